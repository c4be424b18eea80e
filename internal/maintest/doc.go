// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintest is how the tests of a package are run here: what they say depends on the code, not on what ran before
// in the same process, nor on luck.
//
// What is in a bubble of testing/synctest must not wait for what is outside. apimachinery does: whoever reports an error to
// k8s.io/apimachinery/pkg/util/runtime is held up until a millisecond has passed since the last error in the process. The
// clock of a bubble starts in the year 2000, so after an error outside of bubbles, or late in one before, an informer
// slept for hours or decades of its bubble, and was found asleep by its test.
//
// The cases of property tests are those of a seed that is the same in every run, so that a change is judged by itself.
// New cases are looked for where somebody waits for what is found: `make hunt`.
package maintest
