// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrExists means that the ID or the Key of a new entry is known already. Use the stored Entry, which the call
	// also returns, or choose another ID or Key.
	ErrExists = errors.New("entry exists")
	// ErrStale means that the entry was changed since the caller read it. Nothing was written. Read the entry again,
	// and decide anew.
	ErrStale = errors.New("entry is stale")
	// ErrNotFound means that there is no such entry, neither open nor ended within the retention time. Read the
	// affected systems to find out whether an older operation took effect.
	ErrNotFound = errors.New("entry not found")
	// ErrInDoubt means that it is unknown whether the change was stored or will be stored later. Look the entry up
	// before you decide, and reopen the log first if the error is also ErrClosed. Every Log returns ErrInDoubt for
	// this case only, wrapped in a more specific error.
	ErrInDoubt = errors.New("change is in doubt")
	// ErrNoDecisions means that a Log can never have held a record with a decision (of the first release). The
	// decision of an operation may then be in another log: look there.
	ErrNoDecisions = errors.New("log holds no records that decide")
	// ErrNotDamaged means that an entry or a key can be read, and therefore cannot be discarded. Do not discard it:
	// recover or abort its operation instead.
	ErrNotDamaged = errors.New("entry is not damaged")
	// ErrClosed means that the Log accepts no further calls: it was closed or moved, or a failure has left the state
	// of its file unknown. Open the log again to continue. After a failure, the error wraps the cause. The call that
	// returned ErrClosed changed no entry, unless the error is also ErrInDoubt.
	ErrClosed = errors.New("log is closed")
)

// InDoubtError is returned by the calls whose commit failed. Their change may be durable or not: open the log again,
// and read the entry to see which. The error wraps ErrClosed too, since the log accepts no further calls.
type InDoubtError struct {
	Path string // of the file
	ID   string // of the entry in doubt
	Err  error  // the error of the storage
}

// Error returns a text with the file, the entry and the remedy.
func (e *InDoubtError) Error() string {
	return fmt.Sprintf("wal %s: entry %q is in doubt, reopen the log to see whether it was written: %v", e.Path, e.ID, e.Err)
}

// Unwrap returns the storage's own error, ErrInDoubt and ErrClosed.
func (e *InDoubtError) Unwrap() []error { return []error{e.Err, ErrInDoubt, ErrClosed} }

// CorruptError reports damage of one record (ID or Key is set, and the rest of the log is readable) or of the file
// (neither is set). Nothing was deleted. For a record, inspect the affected systems and call File.Discard. If Open
// has renamed a damaged file, SetAside is set: put a backup in its place, or open with AcceptLoss to begin an empty
// log.
type CorruptError struct {
	Path     string // of the file
	ID       string // of the damaged entry, if known
	Key      string // idempotency key of the look-up, if any
	SetAside string // the new path of the damaged file; empty if it is still at Path
	Err      error  // the damage
}

// Error returns a text with the file, the entry and the damage.
func (e *CorruptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wal %s: ", e.Path)
	switch {
	case e.SetAside != "":
		fmt.Fprintf(&b, "file is damaged and was set aside as %s: put a backup in its place, or open with AcceptLoss to begin an empty log", e.SetAside)
	case e.ID != "":
		fmt.Fprintf(&b, "entry %q is damaged", e.ID)
	case e.Key != "":
		fmt.Fprintf(&b, "entry of key %q is damaged", e.Key)
	default:
		b.WriteString("file is damaged")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the error that describes the damage.
func (e *CorruptError) Unwrap() error { return e.Err }

// SchemaError reports a file that this version does not read: written by a newer version, or by another program. The
// file was not changed. Use the version that wrote it, or another path.
type SchemaError struct {
	Path  string
	Found string // the detected format
	Want  string // the format that this version reads
}

// Error returns a text with the file, its format and the expected format.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("wal %s: file is %s, this version reads %s; it was left as it is: use another path or a matching version", e.Path, e.Found, e.Want)
}

// LockedError reports that another process, or another File of this process, has the log open. Stop the process in
// Holder, or use another path.
type LockedError struct {
	Path   string
	Holder Holder        // zero if the holder could not be read
	Waited time.Duration // how long the call waited
}

// Holder is the process that has a log open. It is information for people: the lock does not depend on it.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// String returns "process 12 (program) on host since time", or "an unknown process" if PID is zero.
func (h Holder) String() string {
	if h.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("process %d (%s) on %s since %s", h.PID, h.Command, h.Host, h.Since.Format(time.RFC3339))
}

// Error returns a text with the file and its holder.
func (e *LockedError) Error() string {
	return fmt.Sprintf("wal %s: in use by %s (waited %s): stop it first or use another path", e.Path, e.Holder, e.Waited)
}

// FieldError reports a value that a Log does not accept. Correct the Field as the Reason states; a retry does not
// help.
type FieldError struct {
	Field  string // of the Entry or the Options
	Reason string // the fault and the remedy
}

// Error returns a text with the field and the reason.
func (e *FieldError) Error() string { return "wal: " + e.Field + ": " + e.Reason }
