"""A host that says what a script tells it to, line by line.

    by_hand.py SCRIPT.json COMMAND...

The script is a list of lines to send: an object, or text as it is. After a request the
host waits for its answer, unless "wait" is false beside it. The server's own requests are
answered; {"asked": METHOD} waits for one. At the end the host closes its side, and prints what it got: answers in the order
of the requests, other lines sorted.
"""
import json
import subprocess
import sys

OWN = {
    "roots/list": {"roots": []},
    "sampling/createMessage": {
        "role": "assistant",
        "model": "by-hand",
        "content": {"type": "text", "text": "A sampled answer"},
    },
    "elicitation/create": {"action": "decline"},
}


class Host:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers, self.others, self.asked = {}, [], []

    def send(self, line):
        text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
        self.process.stdin.write(text.encode(errors="surrogateescape") + b"\n")
        self.process.stdin.flush()

    def take(self):
        """Takes a line; false at the end."""
        line = self.process.stdout.readline()
        if not line:
            return False
        message = json.loads(line)
        if "method" in message and "id" in message:
            self.asked.append(message["method"])
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": OWN[message["method"]]})
        elif "method" in message:
            self.others.append(json.dumps(message, sort_keys=True))
        else:
            self.answers[json.dumps(message["id"])] = message
        return True

    def wait_until(self, come, what):
        while not come():
            if not self.take():
                sys.exit(f"the server ended before {what} came")


def main():
    script, *command = sys.argv[1:]
    host = Host(command)
    for step in json.load(open(script)):
        if isinstance(step, str):
            host.send(step)
            continue
        if "asked" in step:
            host.wait_until(lambda: step["asked"] in host.asked, step["asked"])
            continue
        waits = step.pop("wait", True)
        host.send(step)
        if waits and "id" in step:
            host.wait_until(lambda: json.dumps(step["id"]) in host.answers, f"the answer to {step['id']}")
    host.process.stdin.close()
    # The last request's answer may still be to come.
    while host.take():
        pass
    answers = sorted(host.answers.values(), key=lambda answer: str(answer["id"]))
    revision = host.answers["1"]["result"]["protocolVersion"]
    status = host.process.wait()
    json.dump(
        {
            "revision": revision,
            "answers": answers,
            "others": sorted(host.others),
            "asked": sorted(host.asked),
            "status": status,
        },
        sys.stdout,
    )


main()
