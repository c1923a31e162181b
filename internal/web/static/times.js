// The page's times in the browser's time zone; a button shows UTC.
const two = n => String(n).padStart(2, "0");
const local = at => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
const times = [];
const foot = document.getElementById("zone");

// show prints all times, those that came with a new grid or row too.
function show(utc) {
	document.documentElement.toggleAttribute("data-utc", utc);
	for (const time of times) {
		const at = new Date(time.dateTime);
		time.textContent = utc ? time.dataset.utc : local(at);
		time.title = utc ? `${local(at)} here` : `${time.dataset.utc} UTC`;
	}
	const zone = Intl.DateTimeFormat().resolvedOptions().timeZone, button = document.createElement("button");
	button.textContent = utc ? `show ${zone}` : "show UTC";
	button.onclick = () => { sessionStorage.setItem("utc", utc ? "" : "1"); show(!utc); dispatchEvent(new Event("zone")); };
	foot.replaceChildren(`Times are ${utc ? "UTC" : "of " + zone}. `, button);
}

for (const time of document.querySelectorAll("time[datetime]")) {
	const at = new Date(time.dateTime);
	if (isNaN(at) || at.getTimezoneOffset() === 0) continue;
	time.dataset.utc = time.textContent;
	times.push(time);
}
if (times.length > 0 && foot) show(sessionStorage.getItem("utc") === "1");
