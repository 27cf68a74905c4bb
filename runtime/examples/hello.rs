//! A task that sleeps, and a `main` that waits for it.

#[rt::main]
async fn main() -> Result<(), rt::task::JoinError> {
    let greeting = rt::spawn(async {
        rt::time::sleep(std::time::Duration::from_millis(10)).await;
        "hello from a task"
    });
    println!("{}", greeting.await?);
    Ok(())
}
