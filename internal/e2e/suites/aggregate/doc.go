// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregate follows merged lists and watches, and an informer of client-go as it is, over real kube-apiservers
// that are cut off, compacted, restarted, restored from a backup, added and removed.
package aggregate
