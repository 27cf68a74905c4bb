//! Children that are added late, by children, or too late, and what is kept of them. Rows 18 to 24.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};

use rt::task::group::Refusal;
use rt::task::{TaskGroup, is_cancelled, yield_now};
use rt::time::sleep;

use super::{Drops, Guard, MS, PanicDrop, asleep, errors, everywhere, others_wait};

#[test]
fn g18_ended_children_are_not_kept() {
    everywhere(|| async {
        TaskGroup::<Infallible>::scope(async |group| {
            for _ in 0..100 {
                let children: Vec<_> = (0..100).map(|_| group.spawn(async {})).collect();
                assert!(group.len() <= 100);
                for child in children {
                    child.await.expect("no error");
                }
                while !group.is_empty() {
                    // The last instructions of a child may still run on another worker.
                    yield_now().await;
                }
            }
        })
        .await
        .expect("nobody fails");
    });
}

fn tree(group: TaskGroup<Infallible>, depth: usize, drops: Drops) {
    let next = group.clone();
    group.spawn(async move {
        let _guard = drops.guard();
        yield_now().await;
        if depth > 0 {
            tree(next.clone(), depth - 1, drops.clone());
            tree(next, depth - 1, drops.clone());
        }
    });
}

#[test]
fn g19_children_that_children_add_are_waited_for() {
    everywhere(|| async {
        let drops = Drops::default();
        let count = drops.clone();
        TaskGroup::scope(async |group| tree(group, 6, count))
            .await
            .expect("nobody fails");
        assert_eq!(drops.count(), 127);
    });
}

fn endless(group: TaskGroup<&'static str>) {
    let next = group.clone();
    group.spawn(async move {
        loop {
            if next.len() < 200 {
                endless(next.clone());
            }
            yield_now().await;
        }
    });
}

#[test]
fn g20_children_that_add_children_without_end_stop_at_a_failure() {
    everywhere(|| async {
        let error = TaskGroup::scope(async |group| {
            endless(group.clone());
            group.spawn(async {
                sleep(5 * MS).await;
                Err::<(), _>("enough")
            });
        })
        .await
        .expect_err("a child fails");
        assert_eq!(errors(&error), ["enough"]);
        assert_eq!(error.failures().len(), 1);
    });
}

#[test]
fn g21_the_name_of_a_child_is_kept() {
    everywhere(|| async {
        TaskGroup::<Infallible>::scope(async |group| {
            let child = group.build_task().name("fetcher").spawn(async {
                let name = rt::task::current().name().map(str::to_owned);
                assert_eq!(name.as_deref(), Some("fetcher"));
            });
            assert_eq!(child.name(), Some("fetcher"));
        })
        .await
        .expect("nobody fails");
    });
}

#[test]
fn g22_after_a_failure_adding_is_refused_and_the_work_is_not_started() {
    everywhere(|| async {
        let (group_out, refused) = (Arc::new(Mutex::new(None)), Drops::default());
        let (to, guard) = (group_out.clone(), refused.guard());
        let error = TaskGroup::scope(async |group| {
            *to.lock().expect("lock") = Some(group.clone());
            let own = group.clone();
            group.spawn(async move {
                struct SpawnInDrop(TaskGroup<&'static str>, Option<Guard>);
                impl Drop for SpawnInDrop {
                    fn drop(&mut self) {
                        let guard = self.1.take();
                        let refused = self.0.try_spawn(async move {
                            let _guard = guard;
                            panic!("is not started");
                        });
                        let error = refused.expect_err("the group has failed");
                        assert_eq!(error.why, Refusal::Cancelled);
                        assert!(error.to_string().contains("failed"), "{error}");
                        drop(error.future);
                    }
                }
                let _spawner = SpawnInDrop(own, Some(guard));
                pending::<()>().await;
            });
            others_wait().await;
            Err::<(), _>("failed")
        })
        .await
        .expect_err("the body fails");
        assert_eq!(errors(&error), ["failed"]);
        assert_eq!(error.failures().len(), 1, "{error:?}");
        assert_eq!(refused.count(), 1);
    });
}

#[test]
fn g23_a_resource_in_the_body_that_fails_to_close_adds_its_failure_and_the_owner_is_not_cancelled()
{
    everywhere(|| async {
        let owner = rt::spawn(async {
            let error = TaskGroup::scope(async |group| {
                let _outer = PanicDrop("outer resource");
                let _tidy = Drops::default().guard();
                group.spawn(async { Err::<(), _>("child") });
                pending::<Result<(), &str>>().await
            })
            .await
            .expect_err("a child fails");
            assert_eq!(error.failures().len(), 2);
            assert!(!is_cancelled());
            sleep(MS).await;
            "goes on"
        });
        assert_eq!(owner.await.expect("not cancelled"), "goes on");
    });
}

#[test]
fn g24_a_group_that_has_ended_takes_nobody_in() {
    everywhere(|| async {
        let group = TaskGroup::<Infallible>::scope(async |group| Ok(group))
            .await
            .expect("nobody fails");
        assert!(group.is_closed());
        let drops = Drops::default();
        let error = group
            .try_spawn(asleep::<()>(drops.guard()))
            .expect_err("the group has ended");
        assert_eq!(error.why, Refusal::Ended);
        assert!(error.to_string().contains("ended"), "{error}");
        drop(error);
        assert_eq!(drops.count(), 1);
        let handle = group.spawn(asleep::<()>(drops.guard()));
        assert_eq!(drops.count(), 2);
        let error = handle.await.expect_err("never began");
        assert!(error.is_refused() && !error.is_panic(), "{error:?}");
        assert!(error.to_string().contains("ended"), "{error}");
    });
}
