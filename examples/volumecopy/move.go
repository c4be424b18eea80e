// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	jobs         = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// move is the move of the replicas of one StatefulSet, with their volumes.
type move struct {
	Up             dynamic.Interface
	Namespace, Set string
	From, To       string
	Jobs           map[string]string // the manifests of push and pull
	Every          time.Duration     // the interval of reading the state of a Job
	Out            io.Writer
}

// volume is one volume of a replica, before and after the move.
type volume struct {
	template map[string]any // of volumeClaimTemplates
	old, new string         // names of the claims
}

// readJobs reads the manifests of the Jobs push and pull.
func readJobs(data []byte) (map[string]string, error) {
	all := map[string]string{}
	for manifest := range strings.SplitSeq(string(data), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
			return nil, err
		}
		if obj.GetKind() == "Job" {
			all[obj.GetName()] = manifest
		}
	}
	if all["push"] == "" || all["pull"] == "" {
		return nil, errors.New("has no Jobs with the names push and pull")
	}
	return all, nil
}

// run copies each volume: with the Job push in the old cluster, then the Job pull in the new one. When all Jobs have
// succeeded, it sets the annotation that lets the replicas move. It can be run again after an error: Jobs that have succeeded
// are not repeated.
func (m move) run(ctx context.Context) error {
	set, err := m.of(statefulSets).Get(ctx, m.Set, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c := workload.Condition(set, splitter.ConditionPlaced); c["reason"] != "VolumesHeld" {
		return fmt.Errorf("the condition Placed of the StatefulSet %s has the reason %v, not VolumesHeld: no replica waits for its volumes", m.Set, c["reason"])
	}
	volumes, err := m.volumes(ctx, set)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if err := m.job(ctx, "push", m.From, v, v.old); err != nil {
			return err
		}
		if err := m.claim(ctx, v); err != nil {
			return err
		}
		if err := m.job(ctx, "pull", m.To, v, v.new); err != nil {
			return err
		}
	}
	names := m.From
	if before := set.GetAnnotations()[v1alpha1.VolumesAnnotation]; before != "" {
		names = before + "," + m.From
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, set.GetUID(), v1alpha1.VolumesAnnotation, names)
	if _, err := m.of(statefulSets).Patch(ctx, m.Set, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "volumecopy"}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(m.Out, "%d volumes are copied: the replicas may leave %s\n", len(volumes), m.From)
	return nil
}

func (m move) of(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return m.Up.Resource(gvr).Namespace(m.Namespace)
}

// volumes returns the volumes of the replicas in the old cluster. Their claims in the new cluster have the ordinals that
// these replicas will have there: the ordinals after those of the replicas that the new cluster has already.
func (m move) volumes(ctx context.Context, set *unstructured.Unstructured) (all []volume, err error) {
	first, replicas, err := m.replicas(ctx, set, m.From)
	if err != nil {
		return nil, err
	}
	next, present, err := m.replicas(ctx, set, m.To)
	if err != nil {
		return nil, err
	}
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for i := range replicas {
		for _, item := range templates {
			template, _ := item.(map[string]any)
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			all = append(all, volume{template,
				fmt.Sprintf("%s-%s-%d", name, splitter.ShardName(m.Set, m.From), first+i),
				fmt.Sprintf("%s-%s-%d", name, splitter.ShardName(m.Set, m.To), next+present+i)})
		}
	}
	return all, nil
}

// replicas returns the first ordinal and the number of the replicas in a cluster.
func (m move) replicas(ctx context.Context, set *unstructured.Unstructured, cluster string) (first, n int64, err error) {
	shard, err := m.of(statefulSets).Get(ctx, splitter.ShardName(m.Set, cluster), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if set.GetAnnotations()[v1alpha1.OrdinalsPerClusterAnnotation] != "" {
			return 0, 0, fmt.Errorf("the ordinals of %s are not known before it has its first replica: add a replica there first", cluster)
		}
		first, _, _ = unstructured.NestedInt64(set.Object, "spec", "ordinals", "start")
		return first, 0, nil
	case err != nil:
		return 0, 0, err
	}
	first, _, _ = unstructured.NestedInt64(shard.Object, "spec", "ordinals", "start")
	n, _, _ = unstructured.NestedInt64(shard.Object, "spec", "replicas")
	return first, n, nil
}

// claim creates the claim that a replica will ask for in the new cluster.
func (m move) claim(ctx context.Context, v volume) error {
	spec, _ := v.template["spec"].(map[string]any)
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}}
	obj.SetName(v.new)
	obj.SetLabels(map[string]string{syncerv1alpha1.ClusterLabel: m.To})
	return m.create(ctx, claims, obj)
}

// create creates an object, unless an earlier run has created it.
func (m move) create(ctx context.Context, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) error {
	_, err := m.of(gvr).Create(ctx, obj, metav1.CreateOptions{FieldManager: "volumecopy"})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// job runs a Job in a cluster and waits until it has succeeded. In its manifest, $(CLAIM) is the name of the claim in this
// cluster, and $(VOLUME) a name that push and pull of one volume share.
func (m move) job(ctx context.Context, step, cluster string, v volume, claim string) error {
	obj := &unstructured.Unstructured{}
	manifest := strings.NewReplacer("$(CLAIM)", claim, "$(VOLUME)", v.new).Replace(m.Jobs[step])
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		return err
	}
	obj.SetName(step + "-" + v.new)
	obj.SetLabels(map[string]string{syncerv1alpha1.ClusterLabel: cluster})
	if err := m.create(ctx, jobs, obj); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(m.Out, "%s of %s in %s\n", step, claim, cluster)
	for {
		now, err := m.of(jobs).Get(ctx, obj.GetName(), metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case workload.Condition(now, "Complete")["status"] == "True":
			return nil
		case workload.Condition(now, "Failed")["status"] == "True":
			return fmt.Errorf("the Job %s in %s failed: %v: delete it before you try again", now.GetName(), cluster, workload.Condition(now, "Failed")["message"])
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(m.Every):
		}
	}
}
