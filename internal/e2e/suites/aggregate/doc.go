// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregate tests merged lists and watches, and an unmodified informer of client-go, over
// real kube-apiservers that are cut off, compacted, restarted, restored from a backup, added and
// removed.
package aggregate
