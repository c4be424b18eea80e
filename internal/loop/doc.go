// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop is what control loops are made of: [Objects], a copy of the objects of one resource in one API server,
// kept by list and watch; [Queue], which works on keys; [Apply], which writes only what differs; and [Shorten], which bounds
// what conditions say.
//
// Guaranteed:
//   - A copy that is not [Objects.Synced] is not absence, and one whose [Objects.Err] is not nil is old. What was known
//     stays: an API server that is away empties nothing.
//   - A copy never trusts a resourceVersion across a broken connection: after one it lists again, so a server that was
//     restored from a backup is read as it is. A watch that ends at its own time limit goes on where it ended.
//   - Lists are consistent reads, in pages, each decoded once and stripped before the next is asked for.
//   - One key is worked on by one worker at a time, and again if it was added meanwhile.
//   - An object in which nothing differs is not written: no request is made.
//   - Start waits for what it started. Nothing global is set, and client-go logs nothing of its own.
//
// Not guaranteed:
//   - That every change is seen: of several in quick succession, the last.
//   - That a connection that died silently is noticed at once. The transport finds out with its pings: client-go's own
//     ones after 45 seconds.
package loop
