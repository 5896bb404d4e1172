"""Runs ceph commands and reads and writes objects, all in one process with one connection to Ceph.

The commands run in the code of the ceph program. Each line of the input is a request in JSON, and each line of the
output is its answer. The process ends with its input, even if Ceph does not answer.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import queue
import sys
import threading
import traceback

import rados

sys.dont_write_bytecode = True  # of the ceph program
loader = importlib.machinery.SourceFileLoader("ceph", "/usr/bin/ceph")
ceph = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(ceph)

descriptions = None


def describe():
    """Fetches the descriptions of all commands."""
    global descriptions
    ret, out, problem = ceph.json_command(ceph.cluster_handle, prefix="get_command_descriptions")
    if ret:
        raise OSError(abs(ret), f"fetch the descriptions of the commands: {problem}")
    descriptions = ceph.parse_json_funcsigs(out.decode(), "cli")


def command(*args):
    _, options, words = ceph.parse_cmdargs(args)
    for attempt in range(2):
        # The monitors learn the commands of the mgr when it becomes active.
        if attempt or not descriptions:
            describe()
        ret, out, problem = ceph.do_command(options, ceph.find_cmd_target(words), words, descriptions, b"", False)
        if problem != "invalid command":
            break
    if ret:
        raise OSError(abs(ret), problem)
    if not options.output_file:
        return out.decode()
    with open(options.output_file, "wb") as file:
        file.write(out)
    return ""


def objects(pool):
    ceph.cluster_handle.wait_for_latest_osdmap()
    return ceph.cluster_handle.open_ioctx(pool)


def write(pool, name, content):
    objects(pool).write_full(name, content.encode())
    return ""


def read(pool, name):
    opened = objects(pool)
    size, _ = opened.stat(name)
    return opened.read(name, size).decode()


def answer(request):
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            return {"output": {"command": command, "write": write, "read": read}[request["do"]](*request["args"])}
    except Exception as e:  # rados has exceptions of its own
        return {"error": f"{e!r}\n{messages.getvalue()}"}


def work():
    try:
        ceph.cluster_handle = rados.Rados(name="client.admin", conffile=sys.argv[1])
        ceph.cluster_handle.connect()
        while True:
            print(json.dumps(answer(requests.get())), flush=True)
    except Exception:
        traceback.print_exc()
        os._exit(1)


requests = queue.Queue()
threading.Thread(target=work, daemon=True).start()
for line in sys.stdin:
    requests.put(json.loads(line))
os._exit(0)
