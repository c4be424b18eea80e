// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ctltest runs atollctl, in processes of its own, against real control planes, with the
// least rights. Tests may kill the processes.
//
//   - [New] makes planes a ring and builds atollctl. [NewBy] and [Ring.By] use a [Program] of
//     another release.
//   - [Ring.Shell] returns a shell that runs atollctl with a log of the shell's own. [Shell.Run] can
//     kill atollctl after some time, and [Shell.RunUntil] when it has printed a text. [Ring.ShellAs]
//     changes the kubeconfig of one peer. The shells of [Ring.Sharing] share one log.
//   - [Ring.Objects] reads the objects of the planes, as their administrators and without code of
//     the library. [Ring.Witness] does so continuously and records whether a name ever had two
//     owners.
package ctltest
