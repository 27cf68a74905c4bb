//! Requests and aborts: who of a group is cancelled, and what its owner gets. Rows 6, 7 and 12 to 16.

use std::convert::Infallible;
use std::future::pending;

use rt::sync::oneshot;
use rt::task::{JoinHandle, TaskGroup, cancelled, yield_now};
use rt::time::sleep;

use super::{BoxError, Drops, Guard, LONG, MS, PanicDrop, asleep, errors, everywhere, others_wait};

/// A task with a group of five children that clean up, with awaits, when they are asked to end.
fn five_polite(drops: &Drops, body: Guard) -> JoinHandle<usize> {
    let (drops, guards) = (drops.clone(), [(); 5].map(|()| drops.guard()));
    rt::spawn(async move {
        TaskGroup::<Infallible>::scope(async |group| {
            for guard in guards {
                group.spawn(async move {
                    cancelled().await;
                    sleep(2 * MS).await;
                    drop(guard);
                });
            }
            cancelled().await;
            drop(body);
        })
        .await
        .expect("nobody fails");
        drops.count()
    })
}

#[test]
fn g06_a_request_to_the_owner_reaches_all_children_and_the_owner_ends_after_them() {
    everywhere(|| async {
        let drops = Drops::default();
        let owner = five_polite(&drops, Drops::default().guard());
        others_wait().await;
        assert_eq!(drops.count(), 0);
        owner.cancel(LONG);
        assert_eq!(owner.await.expect("answers the request"), 5);
    });
}

#[test]
fn g06_an_abort_of_the_owner_cancels_all_children() {
    everywhere(|| async {
        let drops = Drops::default();
        let guards = [(); 5].map(|()| drops.guard());
        let owner = rt::spawn(TaskGroup::<Infallible>::scope(async |group| {
            for guard in guards {
                group.spawn(asleep::<()>(guard));
            }
        }));
        others_wait().await;
        assert_eq!(drops.count(), 0);
        owner.abort();
        assert!(owner.await.expect_err("aborted").is_aborted());
        drops.reach(5).await;
    });
}

#[test]
fn g07_the_body_sees_the_cancellation_as_well_as_each_child() {
    everywhere(|| async {
        let (drops, body) = (Drops::default(), Drops::default());
        let owner = five_polite(&drops, body.guard());
        owner.cancel(LONG);
        assert_eq!(owner.await.expect("answers the request"), 5);
        assert_eq!(body.count(), 1);

        let guards = [(); 5].map(|()| drops.guard());
        let guard = body.guard();
        let owner = rt::spawn(TaskGroup::<Infallible>::scope(async |group| {
            for guard in guards {
                group.spawn(asleep::<()>(guard));
            }
            asleep::<()>(guard).await;
        }));
        yield_now().await;
        owner.abort();
        assert!(owner.await.expect_err("aborted").is_aborted());
        assert_eq!(body.count(), 2);
        drops.reach(10).await;
    });
}

#[test]
fn g12_an_outer_failure_cancels_the_inner_group_and_stands_alone() {
    everywhere(|| async {
        let drops = Drops::default();
        let guard = drops.guard();
        let error = TaskGroup::<BoxError>::scope(async |group| {
            group.spawn(async {
                TaskGroup::<BoxError>::scope(async |inner| {
                    inner.spawn(asleep::<()>(guard));
                    pending::<()>().await;
                })
                .await?;
                Ok(())
            });
            group.spawn(async {
                sleep(MS).await;
                Err::<(), BoxError>("outer".into())
            });
        })
        .await
        .expect_err("a child fails");
        assert_eq!(error.failures().len(), 1, "{error:?}");
        assert_eq!(
            error.first().error().map(ToString::to_string),
            Some("outer".into())
        );
        // The inner group was dropped, and did not wait.
        drops.reach(1).await;
    });
}

#[test]
fn g13_a_failure_wins_over_a_cancellation_under_way() {
    everywhere(|| async {
        let (asked, is_asked) = oneshot::channel();
        let owner = rt::spawn(TaskGroup::scope(async |group| {
            group.spawn(async {
                is_asked.await.expect("the other child is asked");
                Err::<(), _>("late")
            });
            group.spawn(async {
                cancelled().await;
                asked.send(()).expect("the other child waits");
                sleep(LONG).await; // a slow clean-up
            });
            cancelled().await;
            pending::<Result<(), &str>>().await
        }));
        owner.cancel(LONG);
        let error = owner
            .await
            .expect("the scope ends")
            .expect_err("a child fails");
        assert_eq!(errors(&error), ["late"]);
    });
}

#[test]
fn g14_the_cancellation_of_an_owner_without_children_is_no_group_error() {
    everywhere(|| async {
        let owner = rt::spawn(TaskGroup::<Infallible>::scope(async |_group| {
            pending::<()>().await;
        }));
        yield_now().await;
        owner.abort();
        assert!(owner.await.expect_err("aborted").is_aborted());
    });
}

#[test]
fn g15_a_body_that_answers_a_request_with_an_error_fails_the_group() {
    everywhere(|| async {
        let owner = rt::spawn(TaskGroup::scope(async |_group| {
            cancelled().await;
            Err::<(), _>("not now")
        }));
        owner.cancel(LONG);
        let error = owner
            .await
            .expect("the scope ends")
            .expect_err("the body fails");
        assert_eq!(errors(&error), ["not now"]);
    });
}

#[test]
fn g16_a_body_that_fails_while_it_is_cancelled_for_a_child_adds_its_failure() {
    everywhere(|| async {
        let error = TaskGroup::scope(async |group| {
            let _untidy = PanicDrop("body");
            group.spawn(async { Err::<(), _>("child") });
            pending::<Result<(), &str>>().await
        })
        .await
        .expect_err("a child fails");
        let [child, body] = error.failures() else {
            panic!("two failures, not {error:?}");
        };
        assert_eq!(child.error(), Some(&"child"));
        assert!(body.is_body() && body.is_panic());
    });
}
