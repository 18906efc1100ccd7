#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/serve/server.h"
#include "cli/serve/service.h"
#include "cli/verbs/verbs.h"
#include "train/interrupt.h"

namespace fovea::cli {
namespace {

struct ServeOptions {
  ServiceOptions service;
  std::string host = "127.0.0.1";
  int port = 8000;
};

int run(ServeOptions& options) {
  const train::InterruptGuard guard;
  const train::ExitWhenAsked exits;
  for (const std::string& folder : options.service.runs)
    if (folder.empty()) throw UsageError("serve '': expected a path");
  if (options.host.empty()) throw UsageError("--host '': expected an address");
  options.service.only_this_machine = is_this_machine(options.host);
  Service service(options.service);
  Server(service).listen(options.host, options.port, [&](int port) {
    const std::string host =
        options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
    std::cout << fmt::format("open http://{}:{}/ (Ctrl-C stops)", host, port) << std::endl;
    if (!options.service.only_this_machine)
      std::cerr << "fovea: whoever reaches this machine's port can use the models: there is no "
                   "password and no encryption"
                << std::endl;
  });
  return kDone;
}

}  // namespace

Verb serve_verb() {
  return {"serve", "a page to type into, for each RUN; the same as an HTTP service",
          "fovea serve out/curve --port 0", [](CLI::App& app) {
            auto options = std::make_shared<ServeOptions>();
            app.add_option("run", options->service.runs, "folders that `fovea train` wrote")
                ->required();
            add_integer(
                app, "--port", [options](int64_t port) { options->port = static_cast<int>(port); },
                0, 65535, "the port to listen on; 0: any free port; default: 8000");
            app.add_option("--host", options->host,
                           "the address to listen on; default: this machine alone. 0.0.0.0: all "
                           "networks, without a password");
            add_settings(app, options->service.set,
                         "an option of the system to change for this use, name=value");
            add_threads(app, options->service.threads);
            add_device(app, options->service.device);
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
