// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package synctarget has the code that a Syncer shares with the packages that run and install it. It writes the status
// of a SyncTarget, distinguishes clusters, and lists the rights that a syncer needs.
//
// Guaranteed: [WriteStatus] changes nothing if the SyncTarget has changed since it was read.
//
// Not guaranteed: that a Syncer and a targets.Controller agree about a condition. Each decides for itself which
// conditions it writes.
package synctarget
