//! `vsl serve`.

use daemon::exports::{Listen, Servers, Sockets, serve_vhost};
use daemon::handle::{Handle, Refused};
use daemon::{Failure, Paths, Target};
use device::AttachOptions;

use super::opener;
use super::service::{listen, with_nvme};
use crate::args::Serve;

pub fn serve(args: &Serve) -> Result<(), Failure> {
    let inherited = export::inherited().map_err(|error| {
        Failure::invalid(format!("inherited sockets: {error}")).help("pass listening sockets, or none")
    })?;
    daemon::logging::start(args.log.as_deref(), "warn")?;
    let sockets = [&args.socket, &args.nvme_socket, &args.vhost_socket].into_iter().any(Option::is_some);
    let tcp = !args.listen.is_empty() || !args.nvme_listen.is_empty();
    if !args.stdio && !sockets && !tcp && inherited.is_empty() {
        return Err(Failure::invalid("nothing says where to serve").help(
            "add --stdio, --socket PATH, --listen ADDRESS:PORT, --nvme-listen ADDRESS:PORT or --vhost-socket PATH",
        ));
    }
    let listen = with_nvme(listen(&args.listen, &args.nbd)?, &args.nvme_listen, &args.nvme)?;
    let device = args.paths.join(",");
    let target = Target::parse(&device)?.absolute()?.with_members(false)?;
    let name = target.default_name();
    let encrypted = target.paths().is_some_and(opener::is_encrypted);
    let secret = opener::for_device(&device, encrypted && !args.stdio, &args.opener)?;
    let staging = Paths::from_environment().staging();
    let options = AttachOptions { read_only: args.read_only, secret, staging, ..AttachOptions::default() };
    let handle = Handle::start(&name, target, options)?;
    let served = serve_until_told(args, &handle, inherited, &listen);
    let detached = handle.detach(true).map_err(|refused| match refused {
        Refused::StillAttached(failure) | Refused::Gone(failure) => failure,
    });
    served.and(detached)
}

fn serve_until_told(
    args: &Serve,
    handle: &Handle,
    inherited: Vec<export::Listener>,
    listen: &Listen,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(|error| Failure::failed(format!("signals: {error}")))?;
    let told = runtime.block_on(async { daemon::serve::until_told() })?;
    let sockets = Sockets { nbd: args.socket.as_deref(), nvme: args.nvme_socket.as_deref() };
    let clients = listen.clients();
    let device = Some((args.name.as_str(), handle, args.read_only));
    let servers = Servers::start(inherited, sockets, listen, &clients, device)?;
    let socket = args.vhost_socket.as_deref();
    let name = if args.name.is_empty() { "disk" } else { &args.name };
    let disk = socket.map(|socket| serve_vhost(name, handle, args.read_only, socket, &clients)).transpose()?;
    if args.stdio {
        // A thread of its own, so that a signal ends it too.
        let (done, wait) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || drop(done.send(servers.serve_stdio())));
        return runtime.block_on(async {
            tokio::select! {
                served = wait => match served {
                    Ok(Err(error)) => Err(Failure::failed(format!("standard input and output: {error}"))),
                    _ => Ok(()),
                },
                () = told => Ok(()),
            }
        });
    }
    runtime.block_on(told);
    drop((servers, disk));
    Ok(())
}
