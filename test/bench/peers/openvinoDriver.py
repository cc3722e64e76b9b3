"""Drives OpenVINO GenAI: steps its continuous batching pipeline by hand, so that the time of every token is known.

Follows protocol.ts: one command per line on standard input, one reply per line on file descriptor 3.
"""

import json
import os
import sys
import time

import numpy
import openvino
import openvino_genai


class Driver:
    def open(self, options):
        # cache_size is in gigabytes of K/V. 1 is a few times what one long prompt needs.
        # `settings` may set other fields of SchedulerConfig.
        scheduler = {"cache_size": 1, "enable_prefix_caching": True, "max_num_seqs": 16, **options["settings"].get("scheduler", {})}
        properties = {"INFERENCE_NUM_THREADS": options["threads"], "KV_CACHE_PRECISION": "u8", **options["settings"].get("properties", {})}
        config = openvino_genai.SchedulerConfig()
        for name, value in scheduler.items():
            setattr(config, name, value)
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(options["model"], config, "CPU", properties)
        self.requests = 0
        return {"name": f"openvino-genai {openvino_genai.__version__.split('-')[0]}", "settings": {"weights": "int8", **scheduler, **properties}}

    def generate(self, request):
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = request["tokens"]
        config.ignore_eos = True
        config.do_sample = False
        prompts = [openvino.Tensor(numpy.array([prompt], dtype=numpy.int64)) for prompt in request["prompts"]]
        start = time.perf_counter()
        handles = []
        for prompt in prompts:
            self.requests += 1
            handles.append(self.pipeline.add_request(self.requests, prompt, config))
        generated = [{"tokenIds": [], "atMs": []} for _ in handles]
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
            at = (time.perf_counter() - start) * 1000
            for handle, result in zip(handles, generated):
                while handle.can_read():
                    for output in handle.read().values():
                        result["tokenIds"] += output.generated_ids
                        result["atMs"] += [at] * len(output.generated_ids)
        return generated


def main():
    driver = Driver()
    with os.fdopen(3, "w") as replies:
        for line in sys.stdin:
            command = json.loads(line)
            try:
                if command["op"] == "open":
                    reply = {"opened": driver.open(command["options"])}
                elif command["op"] == "generate":
                    reply = {"generated": driver.generate(command["request"])}
                else:
                    reply = {"closed": True}
            except Exception as error:  # noqa: BLE001: any error of the library is this command's answer
                reply = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), file=replies, flush=True)
            if "closed" in reply:
                break


main()
