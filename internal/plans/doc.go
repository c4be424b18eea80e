// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plans runs the loops of this module through the misfortunes of region/regiontest/perturb. It has tests only.
//
// Each scenario of the table in plans_test.go has API servers in memory, loops made by the constructors that users call,
// and a script of what users do. TestPlans takes a sample of the plans of each. ATOLL_PLANS=N takes N of each scenario,
// ATOLL_PLANS=all every plan of one fault, and `make plans` what docs/plans.md shows. A plan that once failed is kept as a
// test beside its scenario; one that still fails is in the table known, with its reason. What must hold
// all the time is in always_test.go.
//
// TestWriters records which loop writes which field under which manager, and compares it with the table of fields_test.go:
// see docs/writers.md.
//
// TestStates starts the loops in random states instead and judges where they come to rest; ATOLL_STATES=N takes N of them,
// from the seed ATOLL_SEED. docs/states.md has the figures, of make states.
package plans
