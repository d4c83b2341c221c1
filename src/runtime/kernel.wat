;; Finds the lines of a text that contain one of up to 16 needles, 64 bytes at a time.
;;
;; For each needle, two of its bytes are compared at 64 positions at once. The caller chooses these two bytes. Where both bytes match,
;; all bytes of the needle (at most 64) are compared in at most four steps. So no text costs more than four steps per byte and
;; needle.
;;
;; The text is searched in blocks, with one needle after another in each block. So a needle that is not in a block is searched for only
;; once there, and the block stays in the processor's cache for the next needle.
;;
;; All addresses are absolute and below 2 GiB. Reads extend at most 64 bytes beyond the `end` of a text and 16 bytes before its start.
;;
;; `npm run kernel` assembles this file into kernel.ts.
(module
  ;; A page has 64 KiB. Growing the memory beyond the maximum fails.
  (memory (export "memory") 69 32767)

  ;; The needles: 16 records of 256 bytes. The fields of a record, by offset:
  ;;   0    the length of the needle
  ;;   4, 8 the indices of the two bytes that are compared first
  ;;   12   the address of the needle's next match, $none if the block has no more matches, or 0 before the first search
  ;;   64   the bytes of the needle, in lower case if the search ignores case
  ;;   128  a mask that is ORed with the bytes of the text: 0x20 for letters if the search ignores case, otherwise 0
  ;;   192  0xff for each byte of the needle, 0 after its end
  (global $needles (export "needles") i32 (i32.const 0))
  ;; The results: triples of line number, start and end. Start and end are relative to $data.
  (global $results (export "results") i32 (i32.const 4096))
  ;; The start of the text.
  (global $data (export "data") i32 (i32.const 262144))

  (global $none i32 (i32.const 0x7fffffff))
  (global $block i32 (i32.const 32768))

  ;; Clears the bits of positions at or after `end` in the mask of the 16 positions from `at` on.
  (func $before (param $mask i32) (param $at i32) (param $end i32) (result i32)
    (local $left i32)
    (local.set $left (i32.sub (local.get $end) (local.get $at)))
    (select
      (local.get $mask)
      (i32.and (local.get $mask) (i32.sub (i32.shl (i32.const 1) (local.get $left)) (i32.const 1)))
      (i32.ge_u (local.get $left) (i32.const 16))))

  ;; Returns a mask of the highest bits of 64 bytes.
  (func $bits (param $a v128) (param $b v128) (param $c v128) (param $d v128) (result i64)
    (i64.or
      (i64.or
        (i64.extend_i32_u (i8x16.bitmask (local.get $a)))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (local.get $b))) (i64.const 16)))
      (i64.or
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (local.get $c))) (i64.const 32))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (local.get $d))) (i64.const 48)))))

  ;; Counts the line feeds in [at, end).
  (func $count (export "count") (param $at i32) (param $end i32) (result i32)
    (local $count i32) (local $feed v128) (local $sum v128)
    (local.set $feed (v128.const i8x16 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10))
    ;; Count 64 bytes at a time. An equal byte compares to -1, so the negated sum of four comparisons is at most 4 in each byte.
    (block $rest
      (loop $step
        (br_if $rest (i32.gt_u (i32.add (local.get $at) (i32.const 64)) (local.get $end)))
        (local.set $sum
          (i8x16.neg
            (i8x16.add
              (i8x16.add
                (i8x16.eq (v128.load (local.get $at)) (local.get $feed))
                (i8x16.eq (v128.load offset=16 (local.get $at)) (local.get $feed)))
              (i8x16.add
                (i8x16.eq (v128.load offset=32 (local.get $at)) (local.get $feed))
                (i8x16.eq (v128.load offset=48 (local.get $at)) (local.get $feed))))))
        ;; Adds the 16 bytes; the result is at most 64. The two halves are added, and a multiplication with 0x01…01 puts the
        ;; sum of the eight bytes into the highest byte.
        (local.set $count
          (i32.add
            (local.get $count)
            (i32.wrap_i64
              (i64.shr_u
                (i64.mul
                  (i64.add (i64x2.extract_lane 0 (local.get $sum)) (i64x2.extract_lane 1 (local.get $sum)))
                  (i64.const 0x0101010101010101))
                (i64.const 56)))))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $step)))
    (block $done
      (loop $step
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $count
          (i32.add
            (local.get $count)
            (i32.popcnt
              (call $before
                (i8x16.bitmask (i8x16.eq (v128.load (local.get $at)) (local.get $feed)))
                (local.get $at)
                (local.get $end)))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $step)))
    (local.get $count))

  ;; Tests whether [at, end) contains a zero byte.
  (func (export "hasNul") (param $at i32) (param $end i32) (result i32)
    (local $mask i32)
    ;; Test 64 bytes at a time. The smallest of four bytes is zero exactly if one of them is zero.
    (block $rest
      (loop $step
        (br_if $rest (i32.gt_u (i32.add (local.get $at) (i32.const 64)) (local.get $end)))
        (br_if $rest
          (i32.eqz
            (i8x16.all_true
              (i8x16.min_u
                (i8x16.min_u (v128.load (local.get $at)) (v128.load offset=16 (local.get $at)))
                (i8x16.min_u (v128.load offset=32 (local.get $at)) (v128.load offset=48 (local.get $at)))))))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $step)))
    (block $done
      (loop $step
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (if (i32.eqz (i8x16.all_true (v128.load (local.get $at))))
          (then
            (local.set $mask
              (i8x16.bitmask (i8x16.eq (v128.load (local.get $at)) (v128.const i64x2 0 0))))
            (if (call $before (local.get $mask) (local.get $at) (local.get $end)) (then (return (i32.const 1))))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $step)))
    (i32.const 0))

  ;; Returns the start of the line that contains `at`, but at least `from`.
  (func $lineStart (param $from i32) (param $at i32) (result i32)
    (local $mask i32)
    (block $done
      (loop $step
        (br_if $done (i32.le_u (local.get $at) (local.get $from)))
        (local.set $at (i32.sub (local.get $at) (i32.const 16)))
        (local.set $mask (i8x16.bitmask
            (i8x16.eq
              (v128.load (local.get $at))
              (v128.const i8x16 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10))))
        (br_if $step (i32.eqz (local.get $mask)))
        (local.set $at (i32.add (local.get $at) (i32.sub (i32.const 32) (i32.clz (local.get $mask)))))))
    (select (local.get $at) (local.get $from) (i32.gt_u (local.get $at) (local.get $from))))

  ;; Returns the address of the first line feed in [at, end), or `end` if there is none.
  (func $lineEnd (param $at i32) (param $end i32) (result i32)
    (local $mask i32)
    (block $done
      (loop $step
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $mask (i8x16.bitmask
            (i8x16.eq
              (v128.load (local.get $at))
              (v128.const i8x16 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10))))
        (if (local.get $mask)
          (then
            (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $mask))))
            (br $done)))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $step)))
    (select (local.get $at) (local.get $end) (i32.lt_u (local.get $at) (local.get $end))))

  ;; Tests whether the needle occurs at `at`.
  (func $is (param $needle i32) (param $at i32) (result i32)
    (local $rest i32)
    (local.set $rest (i32.load (local.get $needle)))
    (loop $step
      (if (v128.any_true
            (v128.and
              (v128.load offset=192 (local.get $needle))
              (v128.xor
                (v128.load offset=64 (local.get $needle))
                (v128.or (v128.load offset=128 (local.get $needle)) (v128.load (local.get $at))))))
        (then (return (i32.const 0))))
      (local.set $needle (i32.add (local.get $needle) (i32.const 16)))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (local.set $rest (i32.sub (local.get $rest) (i32.const 16)))
      (br_if $step (i32.gt_s (local.get $rest) (i32.const 0))))
    (i32.const 1))

  ;; Returns the first address in [at, stop) at which the needle occurs, or $none.
  (func $find (param $needle i32) (param $at i32) (param $stop i32) (result i32)
    (local $here i32) (local $mask i64) (local $one i32) (local $two i32)
    (local $first i32) (local $firstByte v128) (local $firstFold v128)
    (local $second i32) (local $secondByte v128) (local $secondFold v128)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $first (i32.load offset=4 (local.get $needle)))
    (local.set $firstByte (v128.load8_splat offset=64 (i32.add (local.get $needle) (local.get $first))))
    (local.set $firstFold (v128.load8_splat offset=128 (i32.add (local.get $needle) (local.get $first))))
    (local.set $second (i32.load offset=8 (local.get $needle)))
    (local.set $secondByte (v128.load8_splat offset=64 (i32.add (local.get $needle) (local.get $second))))
    (local.set $secondFold (v128.load8_splat offset=128 (i32.add (local.get $needle) (local.get $second))))
    (block $missing
      (loop $step
        (br_if $missing (i32.ge_u (local.get $at) (local.get $stop)))
        (local.set $one (i32.add (local.get $at) (local.get $first)))
        (local.set $two (i32.add (local.get $at) (local.get $second)))
        ;; Find the positions at which both bytes match, 16 positions in each variable.
        (local.set $a
          (v128.and
            (i8x16.eq (v128.or (v128.load offset=0 (local.get $one)) (local.get $firstFold)) (local.get $firstByte))
            (i8x16.eq (v128.or (v128.load offset=0 (local.get $two)) (local.get $secondFold)) (local.get $secondByte))))
        (local.set $b
          (v128.and
            (i8x16.eq (v128.or (v128.load offset=16 (local.get $one)) (local.get $firstFold)) (local.get $firstByte))
            (i8x16.eq (v128.or (v128.load offset=16 (local.get $two)) (local.get $secondFold)) (local.get $secondByte))))
        (local.set $c
          (v128.and
            (i8x16.eq (v128.or (v128.load offset=32 (local.get $one)) (local.get $firstFold)) (local.get $firstByte))
            (i8x16.eq (v128.or (v128.load offset=32 (local.get $two)) (local.get $secondFold)) (local.get $secondByte))))
        (local.set $d
          (v128.and
            (i8x16.eq (v128.or (v128.load offset=48 (local.get $one)) (local.get $firstFold)) (local.get $firstByte))
            (i8x16.eq (v128.or (v128.load offset=48 (local.get $two)) (local.get $secondFold)) (local.get $secondByte))))
        (if (v128.any_true
              (v128.or (v128.or (local.get $a) (local.get $b)) (v128.or (local.get $c) (local.get $d))))
          (then
            (local.set $mask (call $bits (local.get $a) (local.get $b) (local.get $c) (local.get $d)))
            (loop $candidate
              (local.set $here (i32.add (local.get $at) (i32.wrap_i64 (i64.ctz (local.get $mask)))))
              (br_if $missing (i32.ge_u (local.get $here) (local.get $stop)))
              (if (call $is (local.get $needle) (local.get $here)) (then (return (local.get $here))))
              ;; Clear the lowest bit.
              (local.set $mask (i64.and (local.get $mask) (i64.sub (local.get $mask) (i64.const 1))))
              (br_if $candidate (i64.ne (local.get $mask) (i64.const 0))))))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $step)))
    (global.get $none))

  ;; Marks all needles as not yet searched for.
  (func $forget (param $last i32)
    (local $needle i32)
    (local.set $needle (global.get $needles))
    (block $done
      (loop $step
        (br_if $done (i32.ge_u (local.get $needle) (local.get $last)))
        (i32.store offset=12 (local.get $needle) (i32.const 0))
        (local.set $needle (i32.add (local.get $needle) (i32.const 256)))
        (br $step))))

  ;; Returns the first address in [at, stop) at which a needle begins that ends at or before `end`, or $none.
  (func $best (param $at i32) (param $stop i32) (param $end i32) (param $last i32) (result i32)
    (local $needle i32) (local $best i32) (local $here i32) (local $limit i32)
    (local.set $best (global.get $none))
    (local.set $needle (global.get $needles))
    (block $done
      (loop $step
        (br_if $done (i32.ge_u (local.get $needle) (local.get $last)))
        (local.set $here (i32.load offset=12 (local.get $needle)))
        (if (i32.lt_u (local.get $here) (local.get $at))
          (then
            (local.set $limit (i32.add (i32.sub (local.get $end) (i32.load (local.get $needle))) (i32.const 1)))
            (local.set $limit
              (select (local.get $limit) (local.get $stop) (i32.lt_u (local.get $limit) (local.get $stop))))
            (local.set $here (call $find (local.get $needle) (local.get $at) (local.get $limit)))
            (i32.store offset=12 (local.get $needle) (local.get $here))))
        (local.set $best (select (local.get $here) (local.get $best) (i32.lt_u (local.get $here) (local.get $best))))
        (local.set $needle (i32.add (local.get $needle) (i32.const 256)))
        (br $step)))
    (local.get $best))

  ;; Writes a triple for each line of [from, end) that contains one of the first `count` needles, at most `room` triples.
  ;; Returns the number of triples.
  (func (export "lines")
    (param $from i32) (param $end i32) (param $line i32) (param $count i32) (param $room i32) (result i32)
    (local $last i32) (local $at i32) (local $stop i32) (local $here i32) (local $lineEnd i32) (local $out i32) (local $full i32)
    (local.set $last (i32.add (global.get $needles) (i32.mul (local.get $count) (i32.const 256))))
    (local.set $out (global.get $results))
    (local.set $full (i32.add (local.get $out) (i32.mul (local.get $room) (i32.const 12))))
    (local.set $at (local.get $from))
    (block $done
      (loop $step
        (br_if $done (i32.ge_u (local.get $out) (local.get $full)))
        (if (i32.ge_u (local.get $at) (local.get $stop))
          (then
            (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
            (local.set $stop (i32.add (local.get $at) (global.get $block)))
            (call $forget (local.get $last))))
        (local.set $here (call $best (local.get $at) (local.get $stop) (local.get $end) (local.get $last)))
        (if (i32.eq (local.get $here) (global.get $none))
          (then
            (local.set $at (local.get $stop))
            (br $step)))
        (local.set $line (i32.add (local.get $line) (call $count (local.get $from) (local.get $here))))
        (local.set $lineEnd (call $lineEnd (local.get $here) (local.get $end)))
        (i32.store (local.get $out) (local.get $line))
        (i32.store offset=4
          (local.get $out)
          (i32.sub (call $lineStart (local.get $from) (local.get $here)) (global.get $data)))
        (i32.store offset=8 (local.get $out) (i32.sub (local.get $lineEnd) (global.get $data)))
        (local.set $out (i32.add (local.get $out) (i32.const 12)))
        (local.set $line (i32.add (local.get $line) (i32.const 1)))
        (local.set $from (i32.add (local.get $lineEnd) (i32.const 1)))
        (local.set $at (local.get $from))
        (br $step)))
    (i32.div_u (i32.sub (local.get $out) (global.get $results)) (i32.const 12))))
