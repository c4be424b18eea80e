// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package regions runs the multi-region proposal on real kube-apiservers: a central plane and three
// peers. The loops run in a program that has exactly the rights of internal/rights. The tests then
// inject faults.
package regions
