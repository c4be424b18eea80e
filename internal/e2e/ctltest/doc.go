// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ctltest runs atollctl, in processes of its own, against real control planes: with the
// least rights, each process with its own log, some of them killed.
//
//   - [New] makes planes a ring and builds the program. [NewBy] and [Ring.By] use a [Program] of
//     another release.
//   - [Ring.Shell] runs it with a log of its own. [Shell.Run] can kill it after some time, and
//     [Shell.RunUntil] when it has printed a text. With [Ring.ShellAs] one of its kubeconfigs is
//     wrong.
//   - [Ring.Objects] reads the objects of the planes, as their administrators and without code of
//     the library. [Ring.Witness] does so continuously and records whether a name ever had two
//     owners.
package ctltest
