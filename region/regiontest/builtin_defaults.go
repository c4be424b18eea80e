// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

// setDefaults sets the most visible defaults of a built-in type. It modifies o.
func setDefaults(kind string, o object) {
	switch kind {
	case "Secret":
		mergeStringData(o)
		fill(o, "type", "Opaque")
	case "Service":
		defaultService(child(o, "spec"))
	case "Pod":
		defaultPodSpec(child(o, "spec"))
	case "Deployment":
		defaultDeployment(child(o, "spec"))
	case "StatefulSet":
		defaultStatefulSet(child(o, "spec"))
	case "DaemonSet":
		defaultDaemonSet(child(o, "spec"))
	case "Job":
		defaultJob(child(o, "spec"))
	case "CronJob":
		defaultCronJob(child(o, "spec"))
	case "CustomResourceDefinition":
		defaultCRD(o)
	case "RoleBinding", "ClusterRoleBinding":
		defaultBinding(o)
	}
}

func defaultService(spec map[string]any) {
	fill(spec, "type", "ClusterIP")
	fill(spec, "sessionAffinity", "None")
	fill(spec, "internalTrafficPolicy", "Cluster")
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok {
			fill(port, "protocol", "TCP")
			if _, given := port["targetPort"]; !given || port["targetPort"] == int64(0) {
				port["targetPort"] = port["port"]
			}
		}
	}
}

func defaultDeployment(spec map[string]any) {
	fill(spec, "replicas", int64(1))
	fill(spec, "revisionHistoryLimit", int64(10))
	fill(spec, "progressDeadlineSeconds", int64(600))
	defaultRolling(child(spec, "strategy"), map[string]any{"maxUnavailable": "25%", "maxSurge": "25%"})
	defaultTemplate(spec)
}

func defaultStatefulSet(spec map[string]any) {
	fill(spec, "replicas", int64(1))
	fill(spec, "revisionHistoryLimit", int64(10))
	fill(spec, "podManagementPolicy", "OrderedReady")
	retention := child(spec, "persistentVolumeClaimRetentionPolicy")
	fill(retention, "whenDeleted", "Retain")
	fill(retention, "whenScaled", "Retain")
	defaultRolling(child(spec, "updateStrategy"), map[string]any{"partition": int64(0)})
	defaultTemplate(spec)
}

func defaultDaemonSet(spec map[string]any) {
	fill(spec, "revisionHistoryLimit", int64(10))
	defaultRolling(child(spec, "updateStrategy"), map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)})
	defaultTemplate(spec)
}

// defaultRolling sets the default type of an update strategy, RollingUpdate. For this type it also sets the
// default limits.
func defaultRolling(strategy, limits map[string]any) {
	fill(strategy, "type", "RollingUpdate")
	if strategy["type"] != "RollingUpdate" {
		return
	}
	rolling := child(strategy, "rollingUpdate")
	for name, value := range limits {
		fill(rolling, name, value)
	}
}

func defaultCronJob(spec map[string]any) {
	fill(spec, "concurrencyPolicy", "Allow")
	fill(spec, "suspend", false)
	fill(spec, "successfulJobsHistoryLimit", int64(3))
	fill(spec, "failedJobsHistoryLimit", int64(1))
	defaultTemplate(child(child(spec, "jobTemplate"), "spec"))
}

func defaultBinding(o object) {
	fill(child(o, "roleRef"), "apiGroup", "rbac.authorization.k8s.io")
	subjects, _ := o["subjects"].([]any)
	for _, s := range subjects {
		if subject, ok := s.(map[string]any); ok && subject["kind"] != "ServiceAccount" {
			fill(subject, "apiGroup", "rbac.authorization.k8s.io")
		}
	}
}

func defaultJob(spec map[string]any) {
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	fill(spec, "parallelism", int64(1))
	fill(spec, "backoffLimit", int64(6))
	fill(spec, "completionMode", "NonIndexed")
	fill(spec, "suspend", false)
	fill(spec, "podReplacementPolicy", "TerminatingOrFailed")
	fill(spec, "manualSelector", false)
	defaultTemplate(spec)
}

func defaultTemplate(spec map[string]any) {
	defaultPodSpec(child(child(spec, "template"), "spec"))
}

func defaultPodSpec(spec map[string]any) {
	fill(spec, "restartPolicy", "Always")
	fill(spec, "dnsPolicy", "ClusterFirst")
	fill(spec, "schedulerName", "default-scheduler")
	fill(spec, "terminationGracePeriodSeconds", int64(30))
	if spec["securityContext"] == nil {
		spec["securityContext"] = map[string]any{}
	}
	for _, name := range []string{"initContainers", "containers"} {
		containers, _ := spec[name].([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				continue
			}
			fill(container, "terminationMessagePath", "/dev/termination-log")
			fill(container, "terminationMessagePolicy", "File")
			fill(container, "imagePullPolicy", pullPolicy(text(container["image"])))
			if container["resources"] == nil {
				container["resources"] = map[string]any{}
			}
			ports, _ := container["ports"].([]any)
			for _, p := range ports {
				if port, ok := p.(map[string]any); ok {
					fill(port, "protocol", "TCP")
				}
			}
		}
	}
}

// pullPolicy returns the default imagePullPolicy of a container: Always if image has the tag latest, or
// neither a tag nor a digest, otherwise IfNotPresent.
func pullPolicy(image string) string {
	tag := ""
	for i := len(image) - 1; i >= 0 && image[i] != '/'; i-- {
		if image[i] == '@' {
			return "IfNotPresent"
		}
		if image[i] == ':' && tag == "" {
			tag = image[i+1:]
		}
	}
	if tag == "" || tag == "latest" {
		return "Always"
	}
	return "IfNotPresent"
}

// fill sets a field that is absent or empty.
func fill(m map[string]any, name string, value any) {
	if present, ok := m[name]; !ok || present == nil || present == "" {
		m[name] = value
	}
}
