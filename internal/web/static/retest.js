// The progress of the running test. When it ends, the page is reloaded to show the result.
import {rate} from "./units.js";

const place = document.getElementById("retest"), said = document.getElementById("retest-state");

if (place?.dataset.runs !== undefined) {
	const source = new EventSource(place.dataset.from);
	source.onmessage = e => {
		const doc = JSON.parse(e.data);
		if (doc.state !== "running") {
			source.close();
			location.reload();
			return;
		}
		if (doc.goodput_bps != null) said.textContent = `Testing ${doc.direction}: ${rate(doc.goodput_bps)} after ${doc.at_s.toFixed(1)} s.`;
		else if (doc.results > 0) said.textContent = doc.said || "The result is kept. It is off what is usual, so it is tested again within minutes.";
	};
}
