//! The commands of the Sentinel port. A command is added here.

use super::command::{Access, Row, row};
use super::{client_commands as client, sentinel_commands as sentinel, server_commands as server};

pub(super) const COMMANDS: &[Row] = &[
    row("auth", -2, Access::Anyone, client::auth),
    row("client", -2, Access::User, client::unreachable).with(&[
        row("getname", 2, Access::User, client::get_name),
        row("help", 2, Access::User, client::help),
        row("id", 2, Access::User, client::id),
        row("info", 2, Access::User, client::info),
        row("no-evict", 3, Access::User, client::on_or_off),
        row("no-touch", 3, Access::User, client::on_or_off),
        row("reply", 3, Access::User, client::reply_on),
        row("setinfo", 4, Access::User, client::set_info),
        row("setname", 3, Access::User, client::set_name),
    ]),
    row("command", -1, Access::User, server::command).with(&[
        row("count", 2, Access::User, server::command_count),
        row("docs", -2, Access::User, server::command_docs),
        row("help", 2, Access::User, server::command_help),
        row("info", -2, Access::User, server::command_info),
        row("list", 2, Access::User, server::command_list),
    ]),
    row("hello", -1, Access::Anyone, client::hello),
    row("info", -1, Access::UserWhoMay("info"), server::info),
    row("ping", -1, Access::Listener, client::ping),
    row("psubscribe", -2, Access::Listener, client::psubscribe),
    row("publish", 3, Access::User, server::publish),
    row("punsubscribe", -1, Access::Listener, client::punsubscribe),
    row("quit", -1, Access::Anyone, client::quit),
    row("reset", 1, Access::Anyone, client::reset),
    row("role", 1, Access::User, server::role),
    row("sentinel", -2, Access::User, client::unreachable).with(&[
        row("ckquorum", 3, Access::User, sentinel::ckquorum),
        row("config", -3, Access::User, sentinel::refused),
        row("debug", -2, Access::User, sentinel::refused),
        row("failover", 3, Access::UserWhoMay("failover"), sentinel::failover),
        row("flushconfig", 2, Access::User, sentinel::refused),
        row("get-master-addr-by-name", 3, Access::User, sentinel::get_master_addr_by_name),
        row("help", 2, Access::User, sentinel::help),
        row("info-cache", -3, Access::User, sentinel::refused),
        row("is-master-down-by-addr", 6, Access::User, sentinel::is_master_down_by_addr),
        row("master", 3, Access::User, sentinel::master),
        row("masters", 2, Access::User, sentinel::masters),
        row("monitor", 6, Access::User, sentinel::refused),
        row("myid", 2, Access::User, sentinel::my_id),
        row("pending-scripts", 2, Access::User, sentinel::pending_scripts),
        row("remove", 3, Access::User, sentinel::refused_for_name),
        row("replicas", 3, Access::User, sentinel::replicas),
        row("reset", 3, Access::User, sentinel::refused),
        row("sentinels", 3, Access::User, sentinel::sentinels),
        row("set", -5, Access::User, sentinel::refused_for_name),
        row("simulate-failure", -3, Access::User, sentinel::refused),
        row("slaves", 3, Access::User, sentinel::replicas),
    ]),
    row("subscribe", -2, Access::Listener, client::subscribe),
    row("unsubscribe", -1, Access::Listener, client::unsubscribe),
];

#[cfg(test)]
mod tests {
    use super::super::command::Cx;
    use super::*;
    use engine::error::CommandResult;

    #[test]
    fn rows_are_in_order_and_containers_need_a_subcommand() {
        let sorted = |rows: &[Row]| rows.is_sorted_by_key(|row| row.name);
        assert!(sorted(COMMANDS));
        let unreachable: fn(&mut Cx<'_>) -> CommandResult = client::unreachable;
        for row in COMMANDS {
            assert!(sorted(row.subcommands), "{}", row.name);
            if std::ptr::fn_addr_eq(row.handler, unreachable) {
                assert!(row.arity == -2 && !row.subcommands.is_empty(), "{}", row.name);
            }
        }
    }
}
