// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perturb tests controllers by perturbation: it runs a scenario once undisturbed, and then again with each
// misfortune that can befall a controller, at each write and each watch event of the first run. However a run is
// disturbed, it must end in the same state, and then rest.
//
// A [Scenario] has API servers, controllers (any function that takes a rest.Config and blocks), and a script of what
// users do. [Explore] runs it inside testing/synctest, on API servers in memory, so that hours of waiting take
// milliseconds; [Replay] runs one [Plan], for a failure that Explore printed as a Go test.
//
// What must hold all the time, such as that no object is deleted and made again, is judged at each write ([Scenario].Always).
//
// The misfortunes ([Kind]) are: a crash before and after a write; a request or an answer that is lost; a write that is
// carried out late; a watch that is late, that is cut, or whose history is gone when it resumes; an object that another
// client edits, deletes, or deletes and makes again, between what the controller read and what it writes; a server that
// is put back to an earlier state, as a backup of etcd does; and a controller that runs twice. The idea is that of Sieve
// (Sun et al., OSDI 2022), extended by restores, late writes and concurrent replicas.
//
// # What is guaranteed
//
// A plan that fails is a run that a real API server could show: requests are answered as one would answer them, watches
// keep their order, and a write that is lost, late or refused is so before or after it had its effect, never in part. The
// plans of a scenario, and which of them are taken where there are more than [Options].Plans, are the same in each run
// unless another seed is given.
//
// # What is not
//
//   - The schedule of goroutines is Go's, so one plan may run differently twice.
//   - What a controller keeps in files survives its crash only if the scenario keeps it.
//   - Plans that a run did not reach, since it went another way, are counted ([Report].Missed) and prove nothing.
//   - A controller that reads time by other means than package time sees the time of the bubble only in part.
//   - [Explore], [Find] and [Replay] cut k8s.io/apimachinery/pkg/util/runtime.ErrorHandlers down to its first, for the rest
//     of the process: the second makes a caller that reports an error wait by a clock that all bubbles share. No other test of
//     client-go should run in parallel with the first of them.
package perturb
