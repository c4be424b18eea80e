// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package regions plays the multi-region proposal on real kube-apiservers: a
// central plane and three peers, with the loops as a program embeds them, which
// may do no more than internal/rights grants. Then it breaks what can break.
package regions
