//! All clients, grouped by the account among whose clients each is counted. Knows nothing of users and limits.

use super::account::Account;
use super::handle::{ClientHandle, Clients};
use std::collections::HashMap;
use std::sync::Arc;

/// Clients by account, as they were at one moment.
pub struct ClientsByAccount {
    /// By the address of the account. The account is kept with them, so that no other one gets the address.
    groups: HashMap<*const Account, (Arc<Account>, Vec<Arc<ClientHandle>>)>,
}

impl ClientsByAccount {
    /// Groups the clients of those accounts that are `wanted`. Visits every client once.
    pub fn new(clients: &Clients, wanted: impl Fn(&Account) -> bool) -> ClientsByAccount {
        let mut groups: HashMap<_, (Arc<Account>, Vec<_>)> = HashMap::new();
        for handle in clients.all() {
            if let Some(account) = handle.account().filter(|account| wanted(account)) {
                groups.entry(Arc::as_ptr(&account)).or_insert_with(|| (account, Vec::new())).1.push(handle);
            }
        }
        ClientsByAccount { groups }
    }

    /// The clients of an account, oldest first.
    pub fn of(&self, account: &Arc<Account>) -> &[Arc<ClientHandle>] {
        self.groups.get(&Arc::as_ptr(account)).map_or(&[], |(_, handles)| handles)
    }

    /// What the clients of an account hold in buffers and transactions.
    pub fn held_bytes(&self, account: &Arc<Account>) -> u64 {
        self.of(account).iter().map(|handle| handle.held_bytes() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_with_its_account() {
        let clients = Clients::default();
        let accounts: Vec<Arc<Account>> = (0..3).map(|_| Arc::default()).collect();
        for id in 1..=9 {
            let handle = Arc::new(ClientHandle::new(id, String::new(), String::new(), 1, 0, Box::new(|| {})));
            // Every fourth is counted among nobody's.
            if id % 4 != 0 {
                assert!(handle.enter(&accounts[id as usize % 2]));
            }
            handle.note_input(1000, 1000);
            clients.add(handle);
        }
        let ids = |grouped: &ClientsByAccount, at: usize| -> Vec<u64> {
            grouped.of(&accounts[at]).iter().map(|handle| handle.id).collect()
        };
        let all = ClientsByAccount::new(&clients, |_| true);
        assert_eq!([ids(&all, 0), ids(&all, 1), ids(&all, 2)], [vec![2, 6], vec![1, 3, 5, 7, 9], vec![]]);
        let held: Vec<u64> = accounts.iter().map(|account| all.held_bytes(account)).collect();
        assert_eq!(held, [2000, 5000, 0]);
        let some = ClientsByAccount::new(&clients, |account| std::ptr::eq(account, &*accounts[0]));
        assert_eq!([ids(&some, 0), ids(&some, 1)], [vec![2, 6], vec![]]);
    }
}
