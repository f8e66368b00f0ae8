//! Which addresses are this cluster's own: the API server's and this process's. No range of a grant
//! opens them, only their exact address ([`node_remedy_sandbox::AdminGrant::guarded`]), so that a plugin
//! with a wide grant cannot speak to the API server in the controller's place. Not here: what else no range opens;
//! the sandbox knows loopback, link-local and metadata by itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context as _;
use node_remedy_sandbox::{Cidr, Names};
use tokio::net::UdpSocket;

/// Nothing is ever sent there: a connected datagram socket only asks the routing table.
const ANY_PORT: u16 = 9;

/// The API server's addresses, this process's own as its pod says, and those that it reaches the API
/// server from.
pub async fn addresses(
    server: &str,
    pod: &[IpAddr],
    names: &dyn Names,
) -> anyhow::Result<Vec<Cidr>> {
    // Authorities of URLs have IPv6 addresses in brackets.
    let server = server.trim_start_matches('[').trim_end_matches(']');
    let servers = match server.parse() {
        Ok(address) => vec![address],
        Err(_) => names.resolve(server).await.with_context(|| {
            format!("failed to resolve the API server {server}, which plugins are kept from")
        })?,
    };
    let mut guarded: Vec<IpAddr> = servers.iter().chain(pod).copied().collect();
    for server in servers {
        // Without a way there is no address of ours on it.
        if let Ok(own) = own_towards(server).await {
            guarded.push(own);
        }
    }
    let mut guarded: Vec<_> = guarded.into_iter().map(Cidr::exactly).collect();
    guarded.sort_unstable();
    guarded.dedup();
    Ok(guarded)
}

async fn own_towards(server: IpAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = match server {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    socket.connect(SocketAddr::new(server, ANY_PORT)).await?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use std::io;

    use futures::future::BoxFuture;

    use super::*;

    /// A name with two addresses, and none else.
    struct Server;

    impl Names for Server {
        fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let known = ["127.0.0.7", "127.0.0.8"].map(|address| address.parse().unwrap());
            let found = if name == "api.example.org" {
                Ok(known.into())
            } else {
                Err(io::Error::other("?"))
            };
            Box::pin(async move { found })
        }
    }

    async fn told(server: &str, pod: &[&str]) -> Vec<String> {
        let pod: Vec<_> = pod.iter().map(|address| address.parse().unwrap()).collect();
        let guarded = addresses(server, &pod, &Server).await.unwrap();
        guarded.iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn the_api_server_and_the_process_itself_are_guarded() {
        // The system's own routes: what goes to 127.0.0.7 comes from 127.0.0.1.
        assert_eq!(told("127.0.0.7", &[]).await, ["127.0.0.1/32", "127.0.0.7/32"]);
        let all = ["10.8.0.7/32", "127.0.0.1/32", "127.0.0.7/32", "127.0.0.8/32", "fd00::7/128"];
        assert_eq!(told("api.example.org", &["10.8.0.7", "fd00::7"]).await, all);
        assert!(told("[::1]", &[]).await.contains(&"::1/128".to_owned()));
        let refusal = addresses("elsewhere", &[], &Server).await.unwrap_err().to_string();
        assert!(refusal.contains("failed to resolve the API server elsewhere"), "{refusal}");
    }

    /// Of a network that `check` takes the sandbox must not think otherwise when a node is lost.
    #[test]
    fn a_network_that_check_takes_the_sandbox_takes() {
        let addresses = [
            "0.0.0.0",
            "10.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::a:b",
            "::1:0:0",
            "fd00::",
            "fe80::1",
            "2001:db8::",
            "2001::1",
            "2002:a00::1",
            "64:ff9b::1",
            "64:ff9b:1::",
            "64:ff9c::",
            "::ffff:10.0.0.0",
            "::ffff:0:a00:0",
            "::fffe:a00:0",
            "::ffff:1:0:0",
            "10.0.0",
            "010.0.0.0",
            "fd00::%eth0",
            "",
            "name",
        ];
        let prefixes = ["0", "8", "32", "33", "96", "100", "128", "129", "+8", "08", "-1", "", "x"];
        let mut taken = 0;
        for (address, prefix) in addresses.iter().flat_map(|one| prefixes.map(|two| (one, two))) {
            let text = format!("{address}/{prefix}");
            let by_sandbox = text.parse::<Cidr>().is_ok();
            assert_eq!(node_remedy_api::plan::is_cidr(&text), by_sandbox, "{text}");
            taken += usize::from(by_sandbox);
        }
        assert!(taken > 50, "{taken}");
        assert!(!node_remedy_api::plan::is_cidr("::ffff:10.0.0.0/100"));
    }
}
