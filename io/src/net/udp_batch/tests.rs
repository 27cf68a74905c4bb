use super::*;

fn messages<'a>(lengths: &[usize], bytes: &'a [u8]) -> Vec<Datagram<'a>> {
    let one = |&len: &usize| Datagram {
        data: &bytes[..len],
        target: None,
    };
    lengths.iter().map(one).collect()
}

/// What `send_groups` hands over, call by call: lengths, and whether they are to be cut.
fn calls(
    lengths: &[usize],
    cuts: &AtomicBool,
    mut answer: impl FnMut(usize) -> io::Result<()>,
) -> (io::Result<usize>, Vec<(Vec<usize>, bool)>) {
    let bytes = vec![0; 70_000];
    let mut seen = Vec::new();
    let result = send_groups(&messages(lengths, &bytes), cuts, |group, segment| {
        answer(group.len())?;
        let lengths = group.iter().map(|one| one.data.len()).collect();
        seen.push((lengths, segment.is_some()));
        Ok(())
    });
    (result, seen)
}

#[test]
fn neighbours_of_one_length_go_together_and_a_shorter_one_ends_them() {
    let cuts = AtomicBool::new(true);
    let (result, seen) = calls(&[5, 5, 3, 3, 3, 7, 0, 0, 2], &cuts, |_| Ok(()));
    assert_eq!(result.unwrap(), 9);
    let expected = [
        (vec![5, 5, 3], true),
        (vec![3, 3], true),
        (vec![7], false),
        (vec![0], false),
        (vec![0], false),
        (vec![2], false),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn groups_keep_to_the_limits_of_the_system() {
    let cuts = AtomicBool::new(true);
    let (_, seen) = calls(&[10; 150], &cuts, |_| Ok(()));
    let sizes: Vec<_> = seen.iter().map(|(lengths, _)| lengths.len()).collect();
    assert_eq!(sizes, [64, 64, 22]);
    let (_, seen) = calls(&[1_400; 60], &cuts, |_| Ok(()));
    for (lengths, _) in seen {
        assert!(lengths.iter().sum::<usize>() <= MAX_BYTES);
    }
}

#[test]
fn a_device_that_cannot_cut_gets_single_messages_and_none_is_lost() {
    let cuts = AtomicBool::new(true);
    let refuse = |group: usize| match group {
        1 => Ok(()),
        _ => Err(Errno::IO.into()),
    };
    let (result, seen) = calls(&[5; 4], &cuts, refuse);
    assert_eq!(result.unwrap(), 4);
    assert_eq!(seen, vec![(vec![5], false); 4]);
    assert!(!cuts.load(Relaxed), "it is not asked again");
}

#[test]
fn a_size_that_cannot_be_cut_goes_singly_and_others_are_still_cut() {
    let cuts = AtomicBool::new(true);
    let mut first = true;
    let (result, seen) = calls(&[9, 9, 5, 5], &cuts, |group| {
        if group > 1 && std::mem::take(&mut first) {
            return Err(Errno::INVAL.into());
        }
        Ok(())
    });
    assert_eq!(result.unwrap(), 4);
    // The first group ended with the shorter message after it.
    let expected = [
        (vec![9], false),
        (vec![9], false),
        (vec![5], false),
        (vec![5], false),
    ];
    assert_eq!(seen, expected);
    assert!(cuts.load(Relaxed));
}

#[test]
fn an_error_after_some_messages_says_how_many_went() {
    let cuts = AtomicBool::new(true);
    let mut left = 2;
    let mut answer = |_| {
        if left == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        left -= 1;
        Ok(())
    };
    let (result, _) = calls(&[1, 2, 3], &cuts, &mut answer);
    assert_eq!(result.unwrap(), 2);
    let (result, _) = calls(&[3], &cuts, answer);
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
#[should_panic(expected = "has more bytes than there can be")]
fn a_batch_whose_size_cannot_be_counted_is_refused() {
    let _ = RecvBatch::new(MAX_MESSAGES, usize::MAX / 2);
}
