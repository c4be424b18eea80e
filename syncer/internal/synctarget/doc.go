// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package synctarget has the code that a Syncer shares with those who run and install it: it writes the status of a
// SyncTarget, tells clusters apart, and lists the rights that a syncer needs.
//
// Guaranteed: [WriteStatus] changes nothing if the SyncTarget has changed since it was read.
//
// Not guaranteed: that a Syncer and a targets.Controller agree about a condition. Each decides for itself which
// conditions it writes.
package synctarget
