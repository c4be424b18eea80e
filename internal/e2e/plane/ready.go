// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// poll is the interval at which conditions without a watch are checked.
const poll = 50 * time.Millisecond

var (
	namespaces      = corev1.SchemeGroupVersion.WithResource("namespaces")
	nodes           = corev1.SchemeGroupVersion.WithResource("nodes")
	serviceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
)

// await calls probe until probe returns nil. It fails with probe's last error if ctx ends first,
// and at once if probe returns an endError.
func await(ctx context.Context, what string, probe func(context.Context) error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := probe(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if _, final := errors.AsType[*endError](err); final {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// await does the same as the function await, and also fails as soon as a process of the plane has
// ended.
func (p *Plane) await(ctx context.Context, what string, probe func(context.Context) error) error {
	return await(ctx, what, func(ctx context.Context) error {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		for _, process := range p.processes {
			if !process.running() {
				return process.end()
			}
		}
		return err
	})
}

// awaitReady waits until the API server is ready and has created the namespaces kube-system and
// default.
func (p *Plane) awaitReady(ctx context.Context) error {
	err := p.await(ctx, "kube-apiserver to be ready", func(ctx context.Context) error {
		return readyz(ctx, p.client, p.Server())
	})
	if err != nil {
		return err
	}
	api, err := p.api()
	if err != nil {
		return err
	}
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		err := p.await(ctx, "namespace "+name, func(ctx context.Context) error {
			_, err := api.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func readyz(ctx context.Context, client *http.Client, server string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var failed []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	return fmt.Errorf("/readyz says %s %s", response.Status, strings.Join(failed, ", "))
}

// createNodes creates the nodes, which KWOK keeps ready.
func (p *Plane) createNodes(ctx context.Context) error {
	api, err := p.api()
	if err != nil {
		return err
	}
	for i := range p.options.Nodes {
		name := fmt.Sprintf("node-%d", i+1)
		node := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "Node",
			"metadata": map[string]any{
				"name":   name,
				"labels": map[string]any{corev1.LabelHostname: name},
			},
		}}
		_, err := api.Resource(nodes).Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s: %w", name, err)
		}
	}
	return nil
}

// awaitControllers waits for objects that show the controllers at work: the default service account
// and schedulable nodes.
func (p *Plane) awaitControllers(ctx context.Context) error {
	api, err := p.api()
	if err != nil {
		return err
	}
	err = p.await(ctx, "the default service account", func(ctx context.Context) error {
		_, err := api.Resource(serviceAccounts).Namespace(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for i := range p.options.Nodes {
		name := fmt.Sprintf("node-%d", i+1)
		err := p.await(ctx, name+" to take pods", func(ctx context.Context) error {
			object, err := api.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			var node corev1.Node
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &node); err != nil {
				return err
			}
			return takesPods(&node)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func takesPods(node *corev1.Node) error {
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("it is tainted with %s", node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is not Ready")
}
