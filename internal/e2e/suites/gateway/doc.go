// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway runs the program atoll-gateway before real API servers, with the rights that its page for operators
// prints.
package gateway
