// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perturb tests controllers by perturbation: it runs a scenario without faults, and then again once for each
// possible fault at each write and each watch event of the undisturbed run. Every disturbed run must end in the same
// state as the undisturbed one. After that the controllers must not write.
//
// A [Scenario] has API servers, controllers (any function that takes a rest.Config and blocks), and a script of users'
// actions. [Explore] runs a scenario inside testing/synctest, on API servers in memory, so that hours of waiting take
// milliseconds. If runs fail, Explore prints the shortest failing [Plan] as a Go test that calls [Replay].
//
// [Scenario].Always checks an invariant after each write, for example that no object is deleted and created again.
//
// The faults ([Kind]) are
//   - a crash before or after a write;
//   - a lost request or response, and a write that is executed late;
//   - a watch that is late, that is cut, or whose history is gone when it resumes;
//   - another client that edits, deletes, or deletes and recreates an object between the read and the write of a controller;
//   - a server that is restored to an earlier state, as from a backup of etcd;
//   - a controller that runs twice.
//
// The idea comes from Sieve (Sun et al., OSDI 2022), extended by restores, late writes and concurrent replicas.
//
// # Guaranteed
//
// A failing plan is a run that is possible with a real API server: responses are those of a real server, watches keep
// their order, and a fault at a write comes before or after the effect of the write, never in the middle. If two
// undisturbed runs have the same writes and events, Explore makes the same plans for both, and with the same seed it
// chooses the same ones if there are more than [Options].Plans.
//
// # Not guaranteed
//
//   - The schedule of goroutines is Go's, so one plan may run differently twice.
//   - Files of a controller survive its crash only if the scenario keeps them.
//   - Faults whose point a run did not reach are counted ([Report].Missed) and prove nothing.
//   - A controller that reads the time by other means than package time does not see the time of the bubble.
//   - [Explore], [Find], [Replay] and [Settle] reduce k8s.io/apimachinery/pkg/util/runtime.ErrorHandlers to its first
//     handler, for the rest of the process. The second handler makes a caller that reports an error wait by a clock that
//     all bubbles share. So no other test that uses client-go should run in parallel with the first of these calls.
package perturb
