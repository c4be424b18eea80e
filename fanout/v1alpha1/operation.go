// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import wal "github.com/atoll-dev/atoll/wal/v1alpha1"

// Names of the types of [wal.Operation], which were declared here in the first release.
type (
	// Operation is the entry of one operation in a central log.
	Operation = wal.Operation
	// OperationSpec is the record of one operation.
	OperationSpec = wal.OperationSpec
	// OperationList is a list of Operations.
	OperationList = wal.OperationList
	// OperationState is the state of a record in a central log.
	OperationState = wal.OperationState
	// RecordRef names one incarnation of a record.
	RecordRef = wal.RecordRef
)

// The states of an Operation.
const (
	OperationBeginning = wal.OperationBeginning
	OperationOpen      = wal.OperationOpen
	OperationPending   = wal.OperationPending
	OperationCommitted = wal.OperationCommitted
	OperationEnded     = wal.OperationEnded
	OperationKey       = wal.OperationKey
)
