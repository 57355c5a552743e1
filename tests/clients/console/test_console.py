"""The console in a real browser: Debian's Chromium, without a network of its own. HOLDFAST_BIN names the server."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

# Only has to tell slow from never.
SECONDS_MAX = 60

PAGES = [
    "", "/jobs", "/jobs/index?index=due", "/jobs/record?index=due&key=job:1", "/jobs/dead?index=due",
    "/jobs/groups?index=tasks", "/jobs/groups?index=due", "/runs", "/runs/run?run=run:1", "/cells", "/cells/cell?cell=cell:1&from=0&to=1", "/registers", "/sessions",
    "/sessions/session?sid=session:1", "/keys", "/keys/key?key=job:1", "/slowlog", "/latency", "/clients",
    "/configuration", "/users", "/memory", "/cluster", "/prompt",
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A holdfast with a console and a password."""

    def __init__(self, directory):
        self.port, self.admin = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.admin}"
        self.process = subprocess.Popen(
            [os.environ["HOLDFAST_BIN"], "--port", str(self.port), "--dir", str(directory), "--console",
             "--admin-port", str(self.admin), "--requirepass", "secret"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        # It says where it listens when it can be used.
        for line in self.process.stdout:
            if "listens on" in line:
                return
        raise AssertionError("the server did not start")

    def run(self, *commands):
        """Runs commands as the default user; the replies as they are."""
        requests = [["AUTH", "secret"], *commands]
        encoded = "".join(
            f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words) for words in requests
        )
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(encoded.encode())
            client.shutdown(socket.SHUT_WR)
            replies = b""
            while piece := client.recv(65536):
                replies += piece
        assert replies.startswith(b"+OK\r\n"), replies
        return replies[5:].decode(errors="replace")

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=SECONDS_MAX)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("data"))
    late = str(int(time.time() * 1000) - 7_200_000)
    server.run(
        ["IDX.CREATE", "due", "PREFIX", "1", "job:", "FIELD", "run_at", "ONLY", "state", "2", "pending", "running"],
        *[["HSET", f"job:{number}", "run_at", str(int(late) + number), "state", "running"] for number in range(1, 30)],
        ["HSET", "job:stuck", "run_at", "1700000000000", "state", "running", "error", "<script>document.title='taken'</script>"],
        ["HSET", "job:dead", "run_at", "1700000000000", "state", "dead"],
        ["IDX.CREATE", "tasks", "PREFIX", "1", "task:", "FIELD", "run_at", "GROUP", "tenant", "HELD", "state", "1", "running"],
        ["IDX.LIMIT", "tasks", "EACH", "HELD", "5", "RATE", "100", "60000"],
        *[["HSET", f"task:{number}", "run_at", late, "state", "pending", "tenant", tenant]
          for number, tenant in enumerate(["acme", "acme", "bolt", "<script>document.title='taken'</script>" + "x" * 500])],
        ["RUN.APPEND", "run:1", "a", "RunStarted", "{}"],
        ["RUN.APPEND", "run:1", "b", "StepStarted", "{}", "STEP", "charge"],
        ["CELL.SET", "cell:1", "one\ntwo"],
        ["REG.PUT", "register:1", "1", "value"],
        ["SESSION.OPEN", "ID", "session:1", "TTL", "100000000"],
        ["SET", "<img src=x onerror=\"document.title='taken'\">" + "x" * 500, "y" * 5000],
    )
    yield server
    server.stop()


def start_browser(profile, width, height):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}", f"--window-size={width},{height}",
    ]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return browser


def sign_in(browser, server, user="default", password="secret"):
    browser.get(server.url + "/")
    name = browser.find_element(By.NAME, "user")
    name.clear()
    name.send_keys(user)
    browser.find_element(By.NAME, "password").send_keys(password, Keys.ENTER)


def wait(browser, until):
    # A page that is left meanwhile takes its elements with it.
    return WebDriverWait(browser, SECONDS_MAX, ignored_exceptions=[StaleElementReferenceException]).until(until)


def heading(browser, text):
    wait(browser, lambda browser: browser.find_element(By.TAG_NAME, "h1").text == text)


@pytest.fixture(scope="module")
def browser(server, tmp_path_factory):
    browser = start_browser(tmp_path_factory.mktemp("profile"), 1200, 800)
    sign_in(browser, server)
    heading(browser, "Overview")
    yield browser
    browser.quit()


def complaints(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def test_pages_load_without_a_complaint_of_the_browser(server, browser):
    complaints(browser)
    for page in PAGES:
        browser.get(f"{server.url}/console{page}")
        assert browser.find_element(By.TAG_NAME, "h1").text, page
        assert complaints(browser) == [], page
        assert "taken" not in browser.title, page


def test_a_stuck_job_is_found_and_requeued(server, browser):
    browser.get(server.url + "/console")
    browser.find_element(By.CSS_SELECTOR, "nav.side").find_element(By.LINK_TEXT, "Jobs").click()
    heading(browser, "Jobs")
    browser.find_element(By.LINK_TEXT, "due").click()
    heading(browser, "Index due")
    browser.find_element(By.CSS_SELECTOR, "select[name=late] option[value='86400']").click()
    browser.find_element(By.CSS_SELECTOR, "form.search button").click()
    wait(browser, lambda browser: "late=86400" in browser.current_url)
    records = browser.find_elements(By.PARTIAL_LINK_TEXT, "job:")
    assert [record.text for record in records] == ["job:stuck"]
    records[0].click()
    heading(browser, "Record job:stuck")
    browser.find_element(By.CSS_SELECTOR, "#requeue summary").click()
    browser.find_element(By.CSS_SELECTOR, "#requeue button").click()
    told = wait(browser, lambda browser: browser.find_element(By.CSS_SELECTOR, ".notice")).text
    assert told == "The record is queued again."
    assert "pending" in server.run(["HGET", "job:stuck", "state"])
    assert "1700000000000" not in server.run(["HGET", "job:stuck", "run_at"])


def test_a_lost_race_is_told(server, browser):
    server.run(["HSET", "job:race", "run_at", "1700000000000", "state", "running"])
    browser.get(server.url + "/console/jobs/record?index=due&key=job:race")
    server.run(["HSET", "job:race", "state", "pending"])
    browser.find_element(By.CSS_SELECTOR, "#requeue summary").click()
    browser.find_element(By.CSS_SELECTOR, "#requeue button").click()
    told = wait(browser, lambda browser: browser.find_element(By.CSS_SELECTOR, ".notice")).text
    assert "Nothing was changed" in told
    assert "1700000000000" in server.run(["HGET", "job:race", "run_at"])


def row_of(browser, group):
    return browser.find_element(By.XPATH, f"//tr[td[@data-label='Group']/div[text()='{group}']]")


def told(browser, text):
    wait(browser, lambda browser: browser.find_element(By.CSS_SELECTOR, ".notice").text == text)


def open_and_press(row, summary, button):
    row.find_element(By.XPATH, f".//summary[text()='{summary}']").click()
    row.find_element(By.XPATH, f".//button[text()='{button}']").click()


def test_a_group_is_paused_and_resumed(server, browser):
    claim = ["CLAIM", "1", "tasks", "MAX", "NOW", "WHERE", "tenant", "1", "acme", "SET", "1", "state", "running", "KEYS"]
    browser.get(server.url + "/console/jobs/index?index=tasks")
    browser.find_element(By.LINK_TEXT, "Groups and limits").click()
    heading(browser, "Groups of tasks")
    wait(browser, lambda browser: "now" in row_of(browser, "acme").text)
    open_and_press(row_of(browser, "acme"), "Pause…", "Yes, Pause")
    told(browser, "The group acme: paused: nothing is taken.")
    wait(browser, lambda browser: "no: paused" in row_of(browser, "acme").text)
    assert "now" in row_of(browser, "bolt").text
    assert "task:" not in server.run(claim)
    open_and_press(row_of(browser, "acme"), "Resume…", "Yes, Resume")
    told(browser, "The group acme: resumed.")
    wait(browser, lambda browser: "now" in row_of(browser, "acme").text)
    assert "task:" in server.run(claim)


def test_the_form_of_limits_sets_what_was_changed(server, browser):
    browser.get(server.url + "/console/jobs/groups?index=tasks")
    row = row_of(browser, "bolt")
    row.find_element(By.CSS_SELECTOR, ".limits summary").click()
    held, weight = (row.find_element(By.CSS_SELECTOR, f".limits input[name={name}]") for name in ["held", "weight"])
    assert [held.get_attribute("value"), weight.get_attribute("value")] == ["5", "1"]
    weight.clear()
    weight.send_keys("2.5", Keys.ENTER)
    told(browser, "The group bolt: the limits are set.")
    set_for_bolt = server.run(["IDX.LIMIT", "tasks"]).split("bolt")[1]
    assert "weight" in set_for_bolt and "2.5" in set_for_bolt and "held" not in set_for_bolt


def test_a_chart_moves(server, browser):
    browser.get(server.url + "/console")

    def drawn(browser):
        return browser.execute_script("return document.querySelector('.plot path.line')?.getAttribute('d') ?? ''")

    before = wait(browser, drawn)
    server.run(*[["PING"]] * 1000)
    # Of itself: the page is not loaded again.
    browser.execute_script("window.stayed = true")
    wait(browser, lambda browser: drawn(browser) not in ("", before))
    assert browser.execute_script("return window.stayed")


def test_the_prompt_helps_and_runs(server, browser):
    browser.get(server.url + "/console/prompt")
    prompt = browser.find_element(By.ID, "commands")
    prompt.send_keys("ech")
    wait(browser, lambda browser: "ECHO" in browser.find_element(By.ID, "help").text)
    prompt.send_keys(Keys.TAB)
    prompt.send_keys('"<b>hello</b>"', Keys.CONTROL + Keys.ENTER)
    result = wait(browser, lambda browser: browser.find_element(By.CSS_SELECTOR, ".result pre"))
    assert result.text == "<b>hello</b>"


def test_the_keyboard_reaches_everything(server, browser):
    browser.get(server.url + "/console/jobs")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "To the content"
    seen = set()
    for _ in range(40):
        element = browser.switch_to.active_element
        seen.add(element.text)
        outline = browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", element)
        assert outline != "none" or element.tag_name == "body", element.text
        element.send_keys(Keys.TAB)
    assert {"Jobs", "Prompt", "Sign out", "due"} <= seen


def test_narrow_screens_need_no_scrolling_sideways(server, browser, tmp_path):
    narrow = start_browser(tmp_path / "profile", 360, 740)
    try:
        sign_in(narrow, server)
        heading(narrow, "Overview")
        for page in PAGES:
            wait(narrow, lambda browser: with_style(browser, f"{server.url}/console{page}"))
            width = narrow.execute_script("return document.documentElement.scrollWidth")
            assert width <= 360, f"{page} is {width} wide"
        narrow.find_element(By.CSS_SELECTOR, ".menu summary").click()
        narrow.find_element(By.CSS_SELECTOR, ".menu").find_element(By.LINK_TEXT, "Runs").click()
        heading(narrow, "Runs")
    finally:
        narrow.quit()


def with_style(browser, url):
    """Opens a page. Connections to the port live ten seconds: on a machine that is too busy, its style sheet may not come."""
    browser.get(url)
    return browser.execute_script("return getComputedStyle(document.body).display") == "grid"


def test_a_stranger_gets_nothing(server, tmp_path):
    for page in PAGES:
        with urllib.request.urlopen(f"{server.url}/console{page}") as answer:
            assert answer.url == f"{server.url}/console/sign-in", page
            assert "job:" not in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/console?part=1")
    assert refused.value.code == 401
    stranger = start_browser(tmp_path / "profile", 1200, 800)
    try:
        sign_in(stranger, server, password="wrong")
        told = wait(stranger, lambda browser: browser.find_element(By.CSS_SELECTOR, ".notice.bad")).text
        assert "wrong" in told
        stranger.get(server.url + "/console/keys")
        heading(stranger, "Holdfast")
    finally:
        stranger.quit()


def test_signed_out_is_out(server, browser):
    browser.get(server.url + "/console")
    browser.find_element(By.XPATH, "//button[text()='Sign out']").click()
    heading(browser, "Holdfast")
    browser.get(server.url + "/console/keys")
    heading(browser, "Holdfast")
