//! `holdfast ping`: asks a server whether it is ready. Knows which server is meant; refuses to know what a cluster is.

use super::link::{Client, Refusal, Way, password};
use crate::config::{Asked, Ping, Place, ServerUrl};
use crate::network;
use anyhow::{Context, Result, bail};
use engine::Settings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) fn run(ping: &Ping, settings: &Settings) -> Result<()> {
    let (url, way) = find(&ping.server, settings)?;
    match Client::connect(&url, &way).and_then(|mut client| client.must(&[b"PING"])) {
        Ok(reply) => match reply.text().filter(|text| text == "PONG") {
            Some(text) => println!("{text}"),
            None => bail!("{}: PING was answered with {reply:?}", url.place),
        },
        Err(error) => match error.downcast_ref::<Refusal>() {
            Some(refusal) if ping.any_answer => println!("{}", refusal.text),
            _ => return Err(error),
        },
    }
    Ok(())
}

/// Where the server is and how it is reached: what the command line says, else what the settings say of the server that
/// they are for.
pub(super) fn find(asked: &Asked, settings: &Settings) -> Result<(ServerUrl, Way)> {
    let url = asked.url.as_ref();
    let named = url.map(|url| url.place.clone()).or_else(|| asked.socket.clone().map(Place::Socket));
    // A server that has no other port speaks TLS on the one that it has.
    let only_tls = named.is_none() && settings.port() == 0 && settings.tls_port() > 0;
    let is_tls = asked.tls || only_tls || url.is_some_and(|url| url.is_tls);
    let place = match named {
        Some(place) => place,
        None => {
            let port = if is_tls && settings.tls_port() > 0 { settings.tls_port() } else { settings.client_port() };
            Place::Tcp(asked.host.clone().map_or_else(|| own_host(settings), Ok)?, port)
        }
    };
    let user = asked.user.clone().or_else(|| url.and_then(|url| url.user.clone()));
    let password = password(asked.password.as_ref().or(url.and_then(|url| url.password.as_ref())), settings);
    let way = Way::of_settings(settings).within(asked.answers_within, asked.answers_within);
    Ok((ServerUrl { place, is_tls, user, password }, Way { tls_name: asked.tls_name.clone(), ..way }))
}

/// An address at which a process of this machine reaches the server that the settings are for.
fn own_host(settings: &Settings) -> Result<String> {
    let addresses = network::addresses("bind", &settings.bind())?;
    let (address, _) = addresses.first().context("bind names no address: give the server as -h HOST")?;
    Ok(match address {
        IpAddr::V4(all) if all.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V6(all) if all.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        one => one.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        let none = || None::<String>;
        Asked {
            url: None,
            host: none(),
            socket: None,
            user: none(),
            password: none(),
            tls: false,
            tls_name: none(),
            answers_within: std::time::Duration::from_secs(1),
        }
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let settings = Settings::new();
        pairs.iter().for_each(|(name, value)| settings.load(name.as_bytes(), value.as_bytes()).unwrap());
        settings
    }

    #[test]
    fn the_settings_name_the_server_that_they_are_for() {
        for (bind, port, tls_port, place, with_tls) in [
            ("127.0.0.1", "7000", "0", "127.0.0.1:7000", false),
            ("0.0.0.0", "7000", "7001", "127.0.0.1:7000", false),
            ("* -::*", "0", "7001", "127.0.0.1:7001", true),
            ("::", "7000", "0", "[::1]:7000", false),
            ("10.1.2.3 127.0.0.1", "7000", "0", "10.1.2.3:7000", false),
        ] {
            let (found, _) =
                find(&asked(), &settings(&[("bind", bind), ("port", port), ("tls-port", tls_port)])).unwrap();
            assert_eq!((found.place.to_string().as_str(), found.is_tls), (place, with_tls));
        }
    }

    #[test]
    fn the_command_line_wins_over_the_settings() {
        let settings = settings(&[("port", "7000"), ("tls-port", "7001"), ("requirepass", "of settings")]);
        let (url, _) = find(&Asked { host: Some("h".into()), tls: true, ..asked() }, &settings).unwrap();
        assert_eq!((url.place.to_string().as_str(), url.is_tls), ("h:7001", true));
        let (url, _) = find(&Asked { socket: Some("/run/s".into()), ..asked() }, &settings).unwrap();
        assert_eq!((url.place.to_string().as_str(), url.is_tls), ("/run/s", false));
        assert_eq!(url.password.as_deref(), Some("of settings"));
        let (url, _) = find(&Asked { password: Some("given".into()), ..asked() }, &settings).unwrap();
        assert_eq!(url.password.as_deref(), Some("given"));
    }
}
