// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// fieldManager owns the fields that the log writes.
const fieldManager = "atoll-log"

// pause is the delay before a request is repeated.
const pause = 50 * time.Millisecond

// taken returns the context of a writing call. The call runs to its end, within Options.Timeout, even if the caller's
// context ends: a change that is applied in part is worse than a late one.
func (l *Log) taken(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if l == nil || l.client == nil {
		return nil, nil, errNotMade
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.opts.Timeout)
	// This disables the retries of client-go, which the log could not detect.
	return region.WithAttempt(ctx, new(region.Attempt)), cancel, nil
}

// rest waits for pause and reports whether there is time left.
func rest(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refused reports whether err is an API server's answer that the write had no effect, and will have none.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}

// absent reports whether the object does not exist, as opposed to its type, or the API server.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// get reads a record from a quorum. It returns nil if the record does not exist.
func (l *Log) get(ctx context.Context, name string) (*v1alpha1.Operation, error) {
	u, err := l.client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("central log: read operation %s: %w", name, explain(err))
	}
	return decode(u)
}

func explain(err error) error {
	switch {
	case apierrors.IsNotFound(err) && !absent(err):
		return fmt.Errorf("the central plane does not serve operations.fanout.atoll.dev, install its CRD there: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the central plane must grant create, delete, get, list and patch on operations.fanout.atoll.dev: %w", err)
	}
	return err
}

// find calls get until it succeeds or the time is up.
func (l *Log) find(ctx context.Context, name string) (*v1alpha1.Operation, error) {
	for {
		o, err := l.get(ctx, name)
		if err == nil {
			return o, nil
		}
		if _, damaged := errors.AsType[*wal.CorruptError](err); damaged || refused(err) || !rest(ctx) {
			return nil, err
		}
	}
}

// create stores o, or returns the object that has its name. If an answer is lost, it reads: a create of one name is
// applied at most once.
func (l *Log) create(ctx context.Context, op string, o *v1alpha1.Operation) (stored, other *v1alpha1.Operation, err error) {
	o.Spec.Write = rand.Text()
	u, err := encode(o)
	if err != nil {
		return nil, nil, err
	}
	unsure := false
	for {
		got, err := l.client.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
		if err == nil {
			stored, err = decode(got)
			return stored, nil, err
		}
		switch {
		case apierrors.IsAlreadyExists(err):
		case refused(err):
			if !unsure {
				return nil, nil, fmt.Errorf("central log: %s %q: %w", op, o.Name, explain(err))
			}
		default:
			unsure = true
		}
		was := err
		there, err := l.find(ctx, o.Name)
		switch {
		case err != nil && unsure:
			return nil, nil, &InDoubtError{Op: op, ID: o.Name, Err: was}
		case err != nil:
			return nil, nil, err
		case there == nil && !rest(ctx):
			if unsure {
				return nil, nil, &InDoubtError{Op: op, ID: o.Name, Err: was}
			}
			return nil, nil, fmt.Errorf("central log: %s %q: %w", op, o.Name, was)
		case there == nil:
		case there.Spec.Write == o.Spec.Write:
			return there, nil, nil
		case unsure && there.Spec.Operation == o.Spec.Operation && there.Spec.Began == o.Spec.Began && there.Spec.Holder != o.Spec.Holder:
			// The record may be o itself, if it was created and then taken over by another program.
			return nil, there, &InDoubtError{Op: op, ID: o.Name, Err: wal.ErrStale}
		default:
			return nil, there, nil
		}
	}
}

// patch changes fields of the record id at version v, atomically, and returns the stored record: with wal.ErrStale if
// another change came first, and nil with wal.ErrNotFound if the record does not exist.
func (l *Log) patch(ctx context.Context, op, id, v string, state v1alpha1.OperationState, fields map[string]any) (*v1alpha1.Operation, error) {
	uid, rv, err := parseVersion(v)
	if err != nil {
		return l.stale(ctx, id)
	}
	write := rand.Text()
	spec := maps.Clone(fields)
	spec["write"] = write
	metadata := map[string]any{"resourceVersion": rv}
	if state != "" {
		spec["state"] = state
		metadata["labels"] = map[string]any{stateLabel: state}
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("central log: %s %q: %w", op, id, err)
	}
	unsure := false
	for {
		u, err := l.client.Patch(ctx, id, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
		if err == nil {
			return decode(u)
		}
		switch {
		case apierrors.IsConflict(err), absent(err):
		case apierrors.IsInvalid(err) && !unsure:
			// A validation rule of the schema rejected it. For an ended record the answer is ErrStale, at any
			// version.
			if there, _ := l.find(ctx, id); there != nil && there.Spec.State == v1alpha1.OperationEnded {
				return there, wal.ErrStale
			}
			return nil, fmt.Errorf("central log: %s %q: %w", op, id, err)
		case refused(err) && !unsure:
			return nil, fmt.Errorf("central log: %s %q: %w", op, id, explain(err))
		default:
			unsure = true
		}
		was := err
		there, err := l.find(ctx, id)
		doubt := func(err error) error {
			if unsure {
				return &InDoubtError{Op: op, ID: id, Err: err}
			}
			return err
		}
		switch {
		case err != nil:
			return nil, doubt(fmt.Errorf("%w: %w", was, err))
		case there == nil:
			return nil, doubt(wal.ErrNotFound)
		case there.UID == uid && there.Spec.Write == write:
			return there, nil
		case there.UID != uid || there.ResourceVersion != rv:
			return there, doubt(wal.ErrStale)
		case !rest(ctx):
			return there, doubt(was)
		}
	}
}

// stale returns the result of a change with an invalid version.
func (l *Log) stale(ctx context.Context, id string) (*v1alpha1.Operation, error) {
	there, err := l.find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, wal.ErrNotFound
	default:
		return there, wal.ErrStale
	}
}

// remove deletes the record if it is unchanged since it was read.
func (l *Log) remove(ctx context.Context, o *v1alpha1.Operation) error {
	return l.client.Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
	})
}
