// What both Node suites share: the server's address, and how to skip what an older server lacks.
// Knows nothing about which server answers. The suites empty it.

const [host, port] = process.env.HOLDFAST_TEST_ADDR.split(/:(?=\d+$)/);

export const address = { host, port: Number(port) };

export const FAR = 4_102_444_800; // the first second of the year 2100
export const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

// `ask` sends a command and answers its reply: lacks(t, ask, 'hgetex', 'client|setinfo') skips the test and says so.
export async function lacks(t, ask, ...commands) {
  const known = await ask('COMMAND', 'INFO', ...commands);
  const missing = commands.filter((_, i) => known[i] === null);
  if (missing.length > 0) t.skip(`the server has no ${missing}`);
  return missing.length > 0;
}

// "key:value" lines under "# Section" headings, as INFO prints them.
export function parseInfo(text) {
  const sections = {};
  let section;
  for (const line of text.split('\r\n')) {
    if (line.startsWith('# ')) section = sections[line.slice(2)] = {};
    else if (line) section[line.slice(0, line.indexOf(':'))] = line.slice(line.indexOf(':') + 1);
  }
  return sections;
}

export const range = (n, make) => Array.from({ length: n }, (_, i) => make(i));
