// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bubbletest runs the tests of packages that use testing/synctest, where client-go runs as well.
//
// What is in a bubble must not wait for what is outside. apimachinery does: whoever reports an error to
// k8s.io/apimachinery/pkg/util/runtime is held up until a millisecond has passed since the last error in the process. The
// clock of a bubble starts in the year 2000, so after an error outside of bubbles, or late in one before, an informer
// slept for hours or decades of its bubble, and was found asleep by its test.
package bubbletest
