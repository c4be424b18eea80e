// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit writes audit events of Kubernetes (audit.k8s.io/v1) as JSON lines.
//
// # Guaranteed
//
//   - Each request has one event at its end, at the level Metadata: no event has a query, a header or a body. A watch or
//     another stream also has one when it begins (ResponseStarted).
//   - If events come faster than they are written, requests wait for a place. No event is dropped, unless writing fails:
//     then it is counted and logged.
//   - A file that was renamed, as log rotation does, is opened again within a second.
//
// # Not guaranteed
//
//   - That an event is written if the process is killed: those of the last moment are lost.
//   - An event at the begin of a request that is neither a watch nor a stream.
package audit
