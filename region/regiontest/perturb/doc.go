// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perturb tests controllers by perturbation: it runs a scenario once undisturbed, and then again with each possible
// fault at each write and each watch event of the first run. Every disturbed run must end in the same state, and then rest.
//
// A [Scenario] has API servers, controllers (any function that takes a rest.Config and blocks), and a script of users'
// actions. [Explore] runs it inside testing/synctest, on API servers in memory, so that hours of waiting take milliseconds;
// [Replay] runs one [Plan], for a failure that Explore printed as a Go test.
//
// Invariants, such as that no object is deleted and created again, are checked at each write ([Scenario].Always).
//
// The faults ([Kind]) are
//   - a crash before or after a write;
//   - a lost request or response, and a write that is executed late;
//   - a watch that is late, that is cut, or whose history is gone when it resumes;
//   - another client that edits, deletes, or deletes and recreates an object between the read and the write of a controller;
//   - a server that is restored to an earlier state, as from a backup of etcd;
//   - a controller that runs twice.
//
// The idea is that of Sieve (Sun et al., OSDI 2022), extended by restores, late writes and concurrent replicas.
//
// # Guaranteed
//
// A failing plan is a run that is possible with a real API server: responses are those of a real server, watches keep
// their order, and a fault at a write comes before or after the effect of the write, never in the middle. The plans of
// a scenario, and the choice if there are more than [Options].Plans, are the same in each run with the same seed.
//
// # Not guaranteed
//
//   - The schedule of goroutines is Go's, so one plan may run differently twice.
//   - Files of a controller survive its crash only if the scenario keeps them.
//   - Faults whose point a run did not reach are counted ([Report].Missed) and prove nothing.
//   - A controller that reads time by other means than package time sees the time of the bubble only in part.
//   - [Explore], [Find] and [Replay] reduce k8s.io/apimachinery/pkg/util/runtime.ErrorHandlers to its first handler, for the rest
//     of the process: the second makes a caller that reports an error wait by a clock that all bubbles share. No other test of
//     client-go should run in parallel with their first call.
package perturb
