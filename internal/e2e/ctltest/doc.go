// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ctltest runs atollctl, as processes of their own, against real control
// planes: with the least rights, each with its own log, some of them killed.
//
//   - [New] makes planes a ring and builds the program. [NewBy] and [Ring.By] do it
//     with a [Program] of another release.
//   - [Ring.Shell] runs it with a log of its own; [Shell.Run] may be told to kill
//     it after some time, and [Shell.RunUntil] at what it prints. With
//     [Ring.ShellAs] one of its kubeconfigs is wrong.
//   - [Ring.Objects] reads what the planes hold, as their administrators and
//     without any code of the library; [Ring.Witness] does so all the time and
//     notes whether a name ever had two owners.
package ctltest
