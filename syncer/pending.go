// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// writes are the part of a record about the writes to one object: those that the caches may not show yet, and those
// that a server rejected.
type writes struct {
	created  created
	spec     pending // the last write of the spec downstream, or the last deletion
	status   pending // the last write of the status upstream
	upstream pending // the last write upstream, of any field
	rejected rejection
	// statusUp and statusDown are rejections of the status, by the upstream and by the downstream. They are dropped
	// when another spec goes down.
	statusUp, statusDown rejection
}

// inPlace returns the part of w that is still needed when the downstream object is proven to have the desired
// spec.
func (w writes) inPlace() writes {
	return writes{status: w.status, statusUp: w.statusUp, statusDown: w.statusDown}
}

// cacheDelay is how long a reconcile waits for a cache to show a write.
const cacheDelay = 10 * time.Second

// pending is a write that the cache may not show yet.
type pending struct {
	hash   string    // of the content that was written
	before string    // the resourceVersion in the cache at the time of the write
	after  string    // the resourceVersion in the response
	until  time.Time // when the wait for the cache ends
}

func newPending(hash, before, after string) pending {
	return pending{hash: hash, before: before, after: after, until: time.Now().Add(cacheDelay)}
}

// wait returns how long to wait until the cache shows our write of the content with that hash. version is the
// resourceVersion that the cache shows now. wait returns 0 if the cache shows the write, the last write had other
// content, or the time is over.
func (p pending) wait(hash, version string) time.Duration {
	if p.hash != hash {
		return 0
	}
	return p.waitAny(version)
}

// waitAny does the same as wait, for a write of any content.
func (p pending) waitAny(version string) time.Duration {
	if p.before == p.after || version != p.before {
		return 0
	}
	return max(0, time.Until(p.until))
}

// resultedIn reports whether version is the result of our write of the content with that hash. It compares no content,
// since the server may have changed the content.
func (p pending) resultedIn(hash, version string) bool { return p.hash == hash && p.after == version }

const deletionPrefix = "deleted "

// deletionOf returns the text that a pending deletion of d has in place of a hash.
func deletionOf(d *unstructured.Unstructured) string { return deletionPrefix + string(d.GetUID()) }

// isDeletion reports whether the write was a deletion.
func (p pending) isDeletion() bool { return strings.HasPrefix(p.hash, deletionPrefix) }

// created holds the versions that the caches will show of an object that was just created downstream, if no other
// client changes it.
type created struct {
	before, up string    // the resourceVersions upstream, without our finalizer and with it
	down       string    // the resourceVersion downstream
	uid        types.UID // of the upstream object
	until      time.Time
}

// rejection is a write that a server rejected.
type rejection struct {
	hash  string    // of the content that was written
	state string    // of the object at that time: its resourceVersion, or for a status its generation
	until time.Time // when the write is retried
	why   string    // the message about the rejection, for a status only
}

// anyState is the state of a rejection that holds in any state of the object.
const anyState = "any"

// wait returns how long a write of the content with that hash to an object in that state must wait; 0: it may be made
// now.
func (r rejection) wait(hash, state string) time.Duration {
	if r.hash != hash || r.state != state && r.state != anyState {
		return 0
	}
	return max(0, time.Until(r.until))
}
