// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop has the parts of a control loop: [Objects], a cache of the objects of one resource
// in one API server, kept by list and watch; [Queue], a work queue of keys; [Apply], which writes
// only differences; and [Shorten], which limits the length of messages in conditions.
//
// Guaranteed:
//   - A cache that is not [Objects.Synced] does not prove absence. A cache with an [Objects.Err] is
//     stale, and keeps its objects: objects stay in the cache while the API server is unreachable.
//   - After a broken connection a cache lists again and uses no resourceVersion from before, so the
//     state of a server that was restored from a backup is read. A watch that ends at its own time
//     limit is resumed.
//   - Lists are consistent reads, in pages. Each page is decoded and stripped before the next is
//     requested.
//   - One worker at a time works on a key. If the key is added meanwhile, it is worked on again.
//   - Apply makes no request for an object without a difference.
//   - Start waits for its goroutines. The package sets nothing global, and discards client-go's own
//     log lines.
//
// Not guaranteed:
//   - That every change is observed: of several changes in quick succession, the cache may show
//     only the last.
//   - That a silently broken connection is noticed at once. The transport detects it with its
//     pings: with client-go's defaults after 45 seconds.
package loop
