// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// maxExplained is the greatest number of peers whose differing fields one call of explain reads.
const maxExplained = 4

// explain reads the differing fields of the first maxExplained exceptions whose reason is Edited or
// Behind, and adds the fields to their messages.
func (t *task) explain(ctx context.Context, p *Presence) {
	n := 0
	for i := range p.Exceptions {
		e := &p.Exceptions[i]
		if e.Reason != v1alpha1.AccountReasonEdited && e.Reason != v1alpha1.AccountReasonBehind || n == maxExplained {
			continue
		}
		n++
		if fields := t.fields(ctx, e.Peer); fields != "" {
			e.Message = brief(e.Message + ": " + fields)
		}
	}
}

// template returns the desired object that the peers' objects are compared with.
func (t *task) template() *unstructured.Unstructured {
	if t.itself != "" {
		return t.object
	}
	return desired(t.replicator.kind, t.object)
}

// differs sets t's reason to Conflict: the home's content differs from the central object's and
// must not be changed. The message lists the differing fields, if they can be read.
func (t *task) differs(ctx context.Context, home differingHome) {
	text := "the peers hold an object of the same name that was not made for this one"
	if home.ours || t.replicator.opts.Agreed {
		text = "it differs from the content that the peers have agreed on"
	}
	if fields := t.fields(ctx, home.peer); fields != "" {
		text += ": " + fields
	}
	if !t.replicator.opts.Agreed {
		text += ": remove that object from the peers, or make this one equal to it"
	}
	t.reason, t.message = v1alpha1.AccountReasonConflict, brief(text)
}

// fields returns at most four fields in which peer's object differs from the central object, with
// their values; empty if peer's object cannot be read now.
func (t *task) fields(ctx context.Context, peer region.PeerName) string {
	conn, err := t.replicator.directory.Conn(peer)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	obj, err := clientFor(conn, t.replicator.kind, t.key.Namespace).Get(ctx, t.key.Name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	found, err := differences(t.replicator.kind, t.template(), map[region.PeerName]*unstructured.Unstructured{peer: obj})
	if err != nil {
		return ""
	}
	var texts []string
	for _, d := range found {
		if !strings.Contains(d.Field, OriginAnnotation) {
			texts = append(texts, d.String())
		}
	}
	return strings.Join(texts[:min(len(texts), 4)], ", ")
}
