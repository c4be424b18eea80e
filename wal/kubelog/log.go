// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

var operations = v1alpha1.GroupVersion.WithResource("operations")

// Options configure a Log. The zero value works.
type Options struct {
	// Retention is how long an ended entry can still be found by its ID and Key. Zero: 24 hours.
	Retention time.Duration

	// Timeout limits the duration of each call, whether or not the API server answers. For Open, it limits the
	// request of each page. Zero: 10 seconds.
	Timeout time.Duration

	// Grace is how long Begin waits, by this program's clock, if another Begin has taken the same ID or key, is not
	// finished, and makes no progress. Then Begin deletes the record that the other Begin has made for its entry,
	// which frees the ID and the key. Zero: 2 seconds. Safety does not depend on Grace.
	Grace time.Duration

	// Describe returns the description of an entry, for the columns of kubectl get. If it is nil, the columns are
	// empty.
	Describe func(wal.Entry) Description
}

// Description describes an entry for people.
type Description struct {
	Action string // such as "add"
	Object string // such as "Account acme"
}

// Log is a wal.Log in an API server. It is safe for concurrent use, in any number of programs. Make one with [New].
type Log struct {
	client dynamic.ResourceInterface
	opts   Options
	pruned pruning
}

// errNotMade is the error that each call of a nil or zero Log returns.
var errNotMade = errors.New("the Log was not made by kubelog.New")

var _ wal.Log = (*Log)(nil)

// Shared implements [wal.Log]. It returns true: any number of programs may use the records at once.
func (l *Log) Shared() bool { return true }

// New returns a Log that stores its entries as Operations in the API server of api, where their CRD must be installed
// (config.InstallCRDs). It does no I/O. A Log need not be closed. Writing calls use region.WithAttempt, which disables
// client-go's hidden retries if the transport of api is that of a region.Conn.
func New(api region.API, opts Options) (*Log, error) {
	if argument.Missing(api) {
		return nil, errors.New("kubelog: api is nil: pass what region.APIFor returns for the central plane")
	}
	for _, d := range []struct {
		field *time.Duration
		name  string
		zero  time.Duration
	}{
		{&opts.Retention, "Retention", 24 * time.Hour},
		{&opts.Timeout, "Timeout", 10 * time.Second},
		{&opts.Grace, "Grace", 2 * time.Second},
	} {
		switch {
		case *d.field < 0:
			return nil, &wal.FieldError{Field: d.name, Reason: fmt.Sprintf("is %s, must not be negative", *d.field)}
		case *d.field == 0:
			*d.field = d.zero
		}
	}
	return &Log{client: api.Dynamic().Resource(operations), opts: opts}, nil
}

// InDoubtError means that it is unknown whether a change was stored, or will be stored later. Read the entry to see
// the outcome. The Log remains usable.
type InDoubtError struct {
	Op  string // of the Log: "begin", "advance", ...
	ID  string // of the entry
	Err error  // the last error of the API server; wal.ErrStale if another program changed the entry afterwards
}

// Error returns a text with the entry and the remedy.
func (e *InDoubtError) Error() string {
	return fmt.Sprintf("central log: %s %q is in doubt, look the entry up to see whether it was written: %v", e.Op, e.ID, e.Err)
}

// Is reports whether target is wal.ErrInDoubt.
func (e *InDoubtError) Is(target error) bool { return target == wal.ErrInDoubt }

// Unwrap returns the cause. It returns nil for wal.ErrStale and wal.ErrNotFound, which would mean that nothing was
// written.
func (e *InDoubtError) Unwrap() error {
	if errors.Is(e.Err, wal.ErrStale) || errors.Is(e.Err, wal.ErrNotFound) {
		return nil
	}
	return e.Err
}
