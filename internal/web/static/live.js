// The connections that watch shows, updated each period. Texts are set as textContent, so that names of programs are
// never markup.
import {rate, trip} from "./units.js";

const state = document.getElementById("state"), table = document.querySelector(".live");
const rows = document.getElementById("rows"), unread = document.getElementById("unread");

// Characters that control a browser's output: control and format characters, line and paragraph separators. They are
// escaped as in all output of fullpipe.
const obeyed = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const line = text => String(text ?? "").replace(obeyed, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

function row(c, d) {
	const tr = document.createElement("tr");
	const round = (d.rtt_s != null ? trip(d.rtt_s) : "") + (d.rtt_min_s != null ? ` (${trip(d.rtt_min_s)})` : "");
	const limiter = line(d.limiter) + (d.subtype ? ` (${line(d.subtype)})` : "");
	const seen = (d.evidence ?? []).slice(0, 2).map(e => line(e.text)).join("; ");
	const name = line(c.program || c.unit || c.container || "?") + (c.pid ? `[${c.pid}]` : "");
	for (const [text, kind] of [[name], [`${d.direction === "up" ? "to" : "from"} ${line(c.remote)}`], [rate(d.goodput_bps), "n"],
		[round, "n"], [limiter], [seen, "facts"]]) {
		const td = document.createElement("td");
		td.textContent = text;
		if (kind) td.className = kind;
		tr.append(td);
	}
	return tr;
}

function show(doc) {
	rows.replaceChildren(...doc.connections.slice(0, 50).flatMap(c => c.directions.map(d => row(c, d))));
	table.hidden = doc.connections.length === 0;
	state.textContent = `${doc.standing} connections, ${doc.connections.length + (doc.left_out ?? 0)} of them moved something in the last ${+doc.length_s.toPrecision(2)} s.`;
	unread.textContent = doc.unread ? `Not seen: ${doc.unread.map(line).join("; ")}.` : "";
}

if (state.querySelector("noscript") || state.textContent.trim() === "") {
	const source = new EventSource(state.dataset.from);
	state.textContent = "Looking…";
	source.onmessage = e => show(JSON.parse(e.data));
	source.addEventListener("failed", e => {
		state.textContent = `Connections cannot be watched: ${line(JSON.parse(e.data).message)}`;
		source.close();
	});
	source.onerror = () => { if (source.readyState === EventSource.CLOSED) state.textContent = "The server has ended."; };
}
