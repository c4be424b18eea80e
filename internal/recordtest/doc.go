// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordtest makes the records that the first release wrote into a central log, where a record was the commit
// point of an add: first Pending, then Committed for one object. Nothing writes them any more; tests of those who read
// them need some.
package recordtest
