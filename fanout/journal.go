// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// journal is the data of an operation in the log. A new process can settle the operation with it.
type journal struct {
	Group        string             `json:"group"`
	Kind         string             `json:"kind"`
	Namespace    string             `json:"namespace,omitempty"`
	Name         string             `json:"name"`
	Operation    protocol.Operation `json:"operation"`
	Record       protocol.Record    `json:"record"`
	Content      content            `json:"content,omitempty"`
	FieldManager string             `json:"fieldManager,omitempty"`
	Attempt      int                `json:"attempt,omitempty"`
	Request      string             `json:"request,omitempty"` // the request's fingerprint
	Change       *changeJournal     `json:"change,omitempty"`  // set instead of Operation
	Origin       protocol.Origin    `json:"origin,omitzero"`   // the ring in which it began
}

func (j journal) groupKind() schema.GroupKind { return schema.GroupKind{Group: j.Group, Kind: j.Kind} }

func (j journal) key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
}

func (j journal) encode() ([]byte, error) {
	data, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("journal of operation %s: %w", j.Operation.ID, err)
	}
	return data, nil
}

func decodeJournal(e wal.Entry) (journal, error) {
	var j journal
	if err := json.Unmarshal(e.Data, &j); err != nil {
		return j, fmt.Errorf("log entry %s is not an operation: %w", e.ID, err)
	}
	return j, nil
}

// outcome is the result of an ended operation, as the log stores it.
type outcome struct {
	State       State           `json:"state"`
	Primary     region.PeerName `json:"primary,omitempty"`
	UID         types.UID       `json:"uid,omitempty"`
	Revision    int64           `json:"revision,omitempty"`
	Durable     bool            `json:"durable,omitempty"`
	AlreadyDone bool            `json:"alreadyDone,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Cause       string          `json:"cause,omitempty"` // text for a person
	Peers       []string        `json:"peers,omitempty"`
	Removal     bool            `json:"removal,omitempty"`
	Mode        Mode            `json:"mode"`
	Request     string          `json:"request,omitempty"`
}

// because returns the reason why the operation is not in effect.
func (o outcome) because() string { return orDefault(o.Cause, o.Reason) }

func (o outcome) committed() bool { return o.State == Done || o.State == Committed }

// entryKind returns the Kind of a log entry: the action and the kind of the object.
func entryKind(gk schema.GroupKind, action protocol.Action) string {
	return fmt.Sprintf("%s %s", action, gk)
}

// Describe returns the action, the object, the primary's peer and the ring of a Coordinator's log
// entry. It returns an error if the entry's data is not that of a Coordinator.
func Describe(e wal.Entry) (Description, error) {
	j, err := decodeJournal(e)
	if err != nil {
		return Description{}, err
	}
	if j.Change != nil {
		j.Operation.Action = protocol.Action(j.Change.Operation.Kind)
	}
	if j.Operation.Action == "" {
		return Description{}, fmt.Errorf("log entry %s is not an operation: it has no action", e.ID)
	}
	return Description{
		Operation: e.ID,
		Action:    string(j.Operation.Action),
		Kind:      j.groupKind(),
		Key:       j.key(),
		Primary:   region.PeerName(j.Record.Primary.Peer),
		Ring:      j.Origin.Ring,
	}, nil
}

// Description describes a log entry.
type Description struct {
	Operation string
	Action    string // "add", "adopt", "update", "move" or "remove", or the ChangeKind of a change of the membership
	Kind      schema.GroupKind
	Key       types.NamespacedName
	Primary   region.PeerName
	Ring      string // ID of the ring in which the operation began; empty without an ID, and in entries of the first release
}
