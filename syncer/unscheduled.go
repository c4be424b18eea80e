// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// maxScheduler bounds what is said of a scheduler's message, in bytes: a parent names ten clusters with it.
const maxScheduler = 256

// unschedulable returns what the scheduler says of a pod for which it finds no node. Such a pod may wait for something else
// as well, but nothing else is done before it has a node.
func unschedulable(pod *unstructured.Unstructured) (message string, ok bool) {
	if pod.GetDeletionTimestamp() != nil {
		return "", false
	}
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, v := range conditions {
		if c, _ := v.(map[string]any); c["type"] == "PodScheduled" {
			message, _ = c["message"].(string)
			return loop.Shorten(message, maxScheduler), c["status"] == "False" && c["reason"] == "Unschedulable"
		}
	}
	return "", false
}

// plusUnscheduled adds what is counted of one workload. Of several messages it keeps the one that is the shortest without its
// numbers, so that it is the same next time.
func plusUnscheduled(a, b v1alpha1.Unscheduled) v1alpha1.Unscheduled {
	if x, y := withoutNumbers(a.Message), withoutNumbers(b.Message); a.Pods == 0 || cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(y, x)) < 0 {
		a.Message = b.Message
	}
	a.Pods += b.Pods
	return a
}

// withoutNumbers is a message without what changes in it whenever a node comes or a pod goes.
func withoutNumbers(message string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, message)
}

// setUnscheduled takes over what was counted of all workloads of a type, and has said upstream what is another than is said
// there: another number of pods, or a message that differs in more than numbers.
func (l *lane) setUnscheduled(counted map[types.NamespacedName]v1alpha1.Unscheduled) {
	var differ []types.NamespacedName
	next := map[types.NamespacedName]string{}
	l.mu.Lock()
	for key, now := range counted {
		if says(l.said[key], now) {
			next[key] = l.said[key]
			continue
		}
		text, _ := json.Marshal(now) // a number and a string
		next[key] = string(text)
		differ = append(differ, key)
	}
	for key := range l.said {
		if _, some := next[key]; !some {
			differ = append(differ, key)
		}
	}
	l.unscheduled = next
	l.mu.Unlock()
	for _, key := range differ {
		l.syncer.add(l.queueKey(key))
	}
}

// says says whether text tells what is counted, but for the numbers in the message. What cannot be read does not.
func says(text string, counted v1alpha1.Unscheduled) bool {
	var said v1alpha1.Unscheduled
	err := json.Unmarshal([]byte(text), &said)
	return err == nil && said.Pods == counted.Pods && withoutNumbers(said.Message) == withoutNumbers(counted.Message)
}

// saidLocked says whether the upstream says what is known of the pods of an object. The caller holds the lock.
func (l *lane) saidLocked(key types.NamespacedName) bool {
	return l.unscheduled == nil || l.unscheduled[key] == l.said[key]
}

// heardLocked remembers what the upstream says of the pods of an object. The caller holds the lock.
func (l *lane) heardLocked(key types.NamespacedName, text string) {
	if text == "" {
		delete(l.said, key)
	} else {
		l.said[key] = text
	}
}

// sayUnscheduled writes upstream how many pods of u find no node, if that is known and not what u says. It changes u to what
// is then upstream.
func (l *lane) sayUnscheduled(ctx context.Context, key types.NamespacedName, u *unstructured.Unstructured) error {
	name := v1alpha1.UnscheduledAnnotationPrefix + l.syncer.opts.Target
	text := u.GetAnnotations()[name]
	l.mu.Lock()
	l.heardLocked(key, text)
	var counted v1alpha1.Unscheduled
	if next := l.unscheduled[key]; next != "" && json.Unmarshal([]byte(next), &counted) == nil && says(text, counted) {
		l.unscheduled[key] = text // it was counted before anybody had looked at what is said
	}
	next, said := l.unscheduled[key], l.saidLocked(key)
	l.mu.Unlock()
	if said {
		return nil
	}
	var value any // null removes it
	if next != "" {
		value = next
	}
	after, err := l.mergeMeta(ctx, u, map[string]any{"annotations": map[string]any{name: value}})
	if err != nil {
		return fmt.Errorf("write how many pods find no node: %w", err)
	}
	u.SetResourceVersion(after.GetResourceVersion())
	l.mu.Lock()
	l.heardLocked(key, next)
	l.mu.Unlock()
	l.wrote(ctx, WriteUnscheduled, key)
	return nil
}
