// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintest runs the tests of a package so that their results depend only on the code, not
// on earlier tests in the same process or on chance.
//
// A goroutine in a bubble of testing/synctest must not wait for events outside the bubble.
// apimachinery would wait: k8s.io/apimachinery/pkg/util/runtime delays each reported error until a
// millisecond after the previous error in the process. The clock of a bubble starts in the year
// 2000. So after an error outside of bubbles, or late in an earlier bubble, an informer would sleep
// for hours or decades of its bubble's time.
//
// Property tests use the same seed in every run, so that a result depends only on the change under
// test. `make hunt` searches for new failing cases.
package maintest
