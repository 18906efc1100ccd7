"""Several threads and several processes at once, made before and after the library has threads of its own."""

import os
import signal
import subprocess
import sys
import threading

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import fovea


class Attended(Dataset):
    """Items that are made by attention, in the worker that is asked."""

    def __len__(self):
        return 6

    def __getitem__(self, item):
        x = torch.randn(1, 2, 40, 8, generator=torch.Generator().manual_seed(item), requires_grad=True)
        out = fovea.attend(x, x, x, normaliser=fovea.Entmax(1.5), structure=fovea.Causal())
        out.sum().backward()
        return torch.cat([out.detach(), x.grad])


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_loader(context):
    large = torch.randn(4, 8, 256, 64)
    fovea.attend(large, large, large)  # threads of the parent's, which a fork does not have
    expected = torch.stack([Attended()[item] for item in range(6)])
    loader = DataLoader(Attended(), batch_size=2, num_workers=2, multiprocessing_context=context)
    assert torch.equal(torch.cat(list(loader)), expected)
    fovea.attend(large, large, large)


FORK = """
import os, torch, fovea
torch.set_num_threads(2)
leaves = [torch.randn(2, 8, 256, 64, requires_grad=True) for _ in range(3)]
along = torch.randn(2, 8, 256, 64)
def computed():  # by nothing of libtorch's that has threads: in a fork they would be waited for
    out = fovea.attend(*leaves, structure=fovea.Causal())
    return [x.detach().numpy().tobytes() for x in (out, *torch.autograd.grad(out, leaves, along))]
expected = computed()
child = os.fork()
if child == 0:
    os._exit(0 if computed() == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_with_several_threads():
    # A worker of a loader has one thread; a fork by hand, as of multiprocessing, has as many as its parent.
    program = subprocess.Popen([sys.executable, "-c", FORK], env=os.environ, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        said, _ = program.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)  # the child too
        program.wait()
        pytest.fail("the child waits for ever")
    assert said == "0\n"


def test_threads_that_call_at_once_do_not_meet():
    x = torch.randn(2, 4, 64, 32)
    structure = fovea.Causal() & fovea.Window(9, 0)
    expected = fovea.attend(x, x, x, structure=structure)
    wrong = []

    def calls():
        try:
            for _ in range(20):
                leaf = x.clone().requires_grad_()
                out = fovea.attend(leaf, leaf, leaf, structure=structure)
                out.sum().backward()
                if not torch.equal(out.detach(), expected):
                    wrong.append("another output")
        except Exception as error:  # noqa: BLE001  # of a thread: pytest would not see it
            wrong.append(error)

    threads = [threading.Thread(target=calls) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


STRICT = """
import copy, torch, fovea
layer = fovea.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True, normaliser=fovea.Entmax(1.5))
layer(torch.randn(2, 5, 16)).sum().backward()
x = torch.randn(1, 2, 6, 8, requires_grad=True)
out, lse = fovea.attend(x, x, x, fovea.Dot().soft_cap(3.0), structure=fovea.Causal() | fovea.First(1), return_lse=True)
out.sum().backward()
fovea.weights(x.detach(), x.detach(), top_k=2)
fovea.nn.GATConv(4, 2)(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]])).sum().backward()
torch.vmap(lambda q: fovea.attend(q, q, q))(torch.randn(2, 1, 1, 3, 4))
copy.deepcopy(layer)
"""


def test_no_warning_with_warnings_as_errors():
    said = subprocess.run([sys.executable, "-W", "error", "-c", STRICT], env=os.environ, capture_output=True, text=True)
    assert said.returncode == 0 and not said.stderr, said.stderr


def test_a_star_import_brings_what_is_public_alone():
    names: dict = {}
    exec("from fovea import *", names)
    assert {"attend", "Dot", "Paged", "nn", "hf", "train"} <= names.keys()
    assert "torch" not in names and not [name for name in names if name.startswith("_") and name != "__builtins__"]


def test_the_process_ends_at_once_after_a_call():
    # Threads of a library that were not joined would abort or wait at the exit of the interpreter.
    program = "import torch, fovea; x = torch.randn(4, 8, 256, 64); fovea.attend(x, x, x); print('done')"
    said = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0 and said.stdout == "done\n" and not said.stderr


def test_an_import_brings_nothing_that_takes_seconds():
    heavy = ("torch._dynamo", "torch._inductor", "transformers", "sklearn", "scipy")
    program = f"import sys, torch; before = set(sys.modules); import fovea; print([name for name in {heavy} if name in set(sys.modules) - before])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"
