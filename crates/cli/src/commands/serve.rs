//! `vsl serve`.

use daemon::exports::{Handle, Listen, Refused, serve as listen_for};
use daemon::{Failure, Paths, Target};
use device::AttachOptions;

use super::opener;
use super::service::listen;
use crate::args::Serve;

pub fn serve(args: &Serve) -> Result<(), Failure> {
    let inherited = export::inherited().map_err(|error| {
        Failure::invalid(format!("inherited sockets: {error}")).help("pass listening sockets, or none")
    })?;
    daemon::logging::start(args.log.as_deref(), "warn")?;
    if !args.stdio && args.socket.is_none() && args.listen.is_empty() && inherited.is_empty() {
        return Err(
            Failure::invalid("nothing says where to serve").help("add --stdio, --socket PATH or --listen ADDRESS:PORT")
        );
    }
    let listen = listen(&args.listen, &args.nbd)?;
    let device = args.paths.join(",");
    let target = Target::parse(&device)?.absolute()?.with_members()?;
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
    let export = handle.export(&args.name, args.read_only)?;
    let (server, _) = listen_for(vec![export], inherited, args.socket.as_deref(), listen)?;
    if args.stdio {
        // A thread of its own, so that a signal ends it too.
        let (done, wait) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || drop(done.send(export::nbd::serve_stdio(&server))));
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
    drop(server);
    Ok(())
}
