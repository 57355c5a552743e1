// Lets a program that speaks to 127.0.0.1:6379, as those of the documents do, speak to the server that HOLDFAST_TEST_PORT names:
// `node --require redirect.cjs program.js`. Knows nothing of what is said.

const net = require('node:net');

const port = Number(process.env.HOLDFAST_TEST_PORT);
const { connect } = net.Socket.prototype;

net.Socket.prototype.connect = function redirected(...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (options?.port === 6379) Object.assign(options, { port, host: '127.0.0.1' });
  return connect.apply(this, args);
};
