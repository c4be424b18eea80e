// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plans tests the loops of this module with the faults of region/regiontest/perturb. It has
// tests only.
//
// Each scenario of the table in plans_test.go has API servers in memory, loops made with the public
// constructors, and a script of user actions. TestPlans runs a sample of the plans of each scenario.
// ATOLL_PLANS=N runs N plans of each scenario, ATOLL_PLANS=all runs every plan of one fault, and `make
// plans` runs the plans that docs/evidence/plans.md shows. A plan that once failed is a test beside its
// scenario. Conditions that must always hold are in always_test.go.
//
// TestWriters records which loop writes which field under which manager, and compares the result
// with the table in fields_test.go: see docs/evidence/writers.md.
//
// TestStates starts the loops in random states and checks the state in which they come to rest.
// ATOLL_STATES=N runs N states, from the seed ATOLL_SEED. docs/evidence/states.md has the figures of
// `make states`.
package plans
