// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordtest writes the records of the first release into a central log. In that release the
// commit point of an add was a record: an Operation of a central plane, first in the state Pending,
// and then Committed for one object. The present release only reads records; its tests need this
// package.
package recordtest
